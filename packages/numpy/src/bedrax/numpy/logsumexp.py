"""Sums and means of exponentials, on the logarithmic scale: shared by `bedrax.nn` and `bedrax.scipy`."""

from __future__ import annotations

from collections.abc import Sequence

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import aligned, axes_tuple, inexact, mask_of

__all__ = ["logmeanexp", "logsumexp"]


@one_program(static=("axis", "keepdims", "return_sign"), arrays=("b", "where"))
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """``log(sum(b * exp(a)))``, computed without overflow.

    Args:
      a: array.
      axis: the axis or axes to sum over; None denotes all.
      b: factors, that broadcast against `a`; may be negative.
      keepdims: keep reduced axes with length 1.
      return_sign: return the logarithm of the absolute value, and the sign of the sum (for complex values, its
        phase); otherwise the logarithm of a negative sum is NaN.
      where: which elements to include.

    Returns:
      An array; with `return_sign`, a pair of arrays. Without elements: -inf.

    Examples:

      >>> jax.nn.logsumexp(jnp.array([1000., 1000.]))
      Array(1000.6932, dtype=float32)
    """
    if b is None:
        (a,) = inexact("logsumexp", a)
    else:
        a, b = inexact("logsumexp", a, b)
        a, b = jnp.broadcast_arrays(aligned(a, b), aligned(b, a))
        a = jnp.where(b != 0, a, np.asarray(-np.inf, a.dtype))
    if where is not None:
        a = jnp.where(mask_of("logsumexp", where), a, np.asarray(-np.inf, a.dtype))
    axes = axes_tuple(axis, a.ndim)
    top = lax.stop_gradient(jnp.max(jnp.real(a), axis=axes, keepdims=True, initial=-np.inf))
    # A maximum that is not finite must not be subtracted: inf - inf is NaN.
    top = jnp.where(jnp.isfinite(top), top, np.asarray(0, top.dtype))
    terms = jnp.exp(a - top.astype(a.dtype))
    if b is not None:
        terms = b * terms
    total = jnp.sum(terms, axis=axes, keepdims=keepdims)
    if not keepdims:
        top = jnp.squeeze(top, axis=axes)
    if not return_sign:
        return jnp.log(total) + top.astype(a.dtype)
    size = abs(total)
    if dtypes.is_complex(a.dtype):
        sign = total / jnp.where(size == 0, 1, size).astype(a.dtype)
    else:
        sign = lax.sign(total)
    return jnp.log(size) + top, sign


def logmeanexp(
    x: ArrayLike, axis: int | Sequence[int] | None = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """``log(mean(exp(x)))``, computed without overflow; arguments as for `logsumexp`.

    Examples:

      >>> jax.nn.logmeanexp(jnp.array([1000., 1000.]))
      Array(1000., dtype=float32)
    """
    (x,) = inexact("logmeanexp", x)
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    axes = axes_tuple(axis, x.ndim)
    if where is None:
        count = dims.size([x.shape[d] for d in axes])
        count = np.asarray(count) if dims.is_constant_dim(count) else dims.dim_as_value(count)
    else:
        count = jnp.sum(jnp.broadcast_to(where, x.shape), axis=axes, keepdims=keepdims)
    return total - jnp.log(jnp.asarray(count, dtypes.to_real_dtype(x.dtype)))
