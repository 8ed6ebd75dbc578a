"""`jax.scipy.integrate`: integration of samples."""

from __future__ import annotations

from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.numpy import calculus

__all__ = ["trapezoid"]


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y, x, dx, axis: as in `jax.numpy.trapezoid`.

    Examples:

      >>> jax.scipy.integrate.trapezoid(jnp.array([0., 1., 4.]), x=jnp.array([0., 1., 2.]))
      Array(3., dtype=float32)
    """
    return calculus.trapezoid(y, x, dx, axis)
