"""Polynomials: the function of `polynomial_p`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax.operands import bind_nary
from bedrax.lax.primitives.conversions import convert_to
from bedrax.lax.primitives.elementwise import polynomial_p, scalar_like

__all__ = ["polynomial"]


def _coefficient(c: Any, x: Any, dtype: Any) -> Any:
    own = aval_of(c).dtype
    if dtypes.is_complex(own) and not dtypes.is_complex(dtype):
        raise TypeError(f"lax.polynomial: a coefficient is complex, x is {dtype}; convert x first")
    # A Python coefficient is as weakly typed as `x`: the result is weakly typed if all operands are.
    if isinstance(c, bool | int | float | complex):
        return scalar_like(x, dtype.type(c).item())
    return convert_to(c, dtype)


def polynomial(x: ArrayLike, coeffs: Iterable[Any], *, unroll: int | None = None) -> Array:
    r"""Elementwise :math:`\sum_k a_k x^k`, by Horner's rule.

    The derivative by `x` is evaluated as the polynomial of coefficients :math:`k a_k`.

    Args:
      x: array of numbers.
      coeffs: the coefficients, the constant term first: scalars, or arrays of the rank of `x` with axes that match or
        have length 1. They are converted to the dtype of `x`, also where digits are lost (1.5 to an integer).
      unroll: the greatest number of coefficients evaluated without a loop; more of them are evaluated in a loop, with
        this number of steps in its body. None: 8.

    Returns:
      An array of the dtype of `x`; 0 where there are no coefficients.

    Raises:
      TypeError: `x` holds booleans, or reals while a coefficient is complex; shapes do not match.
      ValueError: `unroll` is negative.

    Examples:

      >>> lax.polynomial(jnp.array([0., 1., 3.]), [1., 5., 2.])
      Array([ 1.,  8., 34.], dtype=float32)
    """
    dtype = aval_of(x).dtype
    coefficients = [_coefficient(c, x, dtype) for c in coeffs]
    if unroll is not None:
        unroll = dims.integer(unroll, "unroll")
        if unroll < 0:
            raise ValueError(f"lax.polynomial: unroll is not negative, got {unroll}")
    params = {} if unroll is None else {"unroll": unroll}
    return bind_nary(polynomial_p, x, *(coefficients or [scalar_like(x, 0)]), **params)
