"""Queries of numbers: whether they are finite, infinite, NaN, real."""

from __future__ import annotations

from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import elementwise as ops
from bedrax.lax.promotion import operand
from bedrax.numpy.arguments import zero_like
from bedrax.numpy.ufuncs import _is_inf, imag


@one_program
def isfinite(x: ArrayLike, /) -> Array:
    """Whether elements are neither infinite nor nan.

    Examples:

      >>> jnp.isfinite(jnp.array([1., jnp.inf, jnp.nan]))
      Array([ True, False, False], dtype=bool)
    """
    x = operand("isfinite", x)
    dtype = aval_of(x).dtype
    if dtypes.is_floating(dtype):
        return lax.is_finite(x)
    if dtypes.is_complex(dtype):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.full_like(x, True, np.dtype(bool))


@one_program
def isinf(x: ArrayLike, /) -> Array:
    """Whether elements are infinite.

    Examples:

      >>> jnp.isinf(jnp.array([1., -jnp.inf, jnp.nan]))
      Array([False,  True, False], dtype=bool)
    """
    x = operand("isinf", x)
    dtype = aval_of(x).dtype
    if dtypes.is_floating(dtype):
        return lax.convert_to(_is_inf(x), np.dtype(bool), False)
    if dtypes.is_complex(dtype):
        return lax.bitwise_or(_is_inf(lax.real(x)), _is_inf(lax.imag(x)))
    return lax.full_like(x, False, np.dtype(bool))


@one_program
def isnan(x: Array, /) -> Array:
    """Whether elements are nan.

    Examples:

      >>> jnp.isnan(jnp.array([1., jnp.inf, jnp.nan]))
      Array([False, False,  True], dtype=bool)
    """
    x = operand("isnan", x)
    if not dtypes.is_inexact(aval_of(x).dtype):
        return lax.convert_to(lax.full_like(x, False, np.dtype(bool)), np.dtype(bool), aval_of(x).weak_type)
    return ops.ne_p.bind(x, x)


def _signed_inf(name: str, x, out, value: float):
    if out is not None:
        raise NotImplementedError(f"jnp.{name}: out is not supported, as arrays are immutable; use what is returned")
    x = operand(name, x)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        raise ValueError(f"{name} is not well defined for {dtype}")
    if not dtypes.is_floating(dtype):
        return lax.full_like(x, False, np.dtype(bool))
    return lax.eq(x, np.asarray(value).astype(dtype)[()])


@one_program(static=("out",))
def isposinf(x: ArrayLike, /, out: Any = None) -> Any:
    """Whether elements are positive infinity.

    Args:
      x: real array or scalar. No integer is infinite.
      out: must be None.

    Returns:
      A boolean array of the shape of `x`.

    Raises:
      ValueError: `x` is complex.

    Examples:

      >>> jnp.isposinf(jnp.array([-jnp.inf, jnp.inf]))
      Array([False,  True], dtype=bool)
    """
    return _signed_inf("isposinf", x, out, np.inf)


@one_program(static=("out",))
def isneginf(x: ArrayLike, /, out: Any = None) -> Any:
    """Whether elements are negative infinity.

    Args:
      x: real array or scalar. No integer is infinite.
      out: must be None.

    Returns:
      A boolean array of the shape of `x`.

    Raises:
      ValueError: `x` is complex.

    Examples:

      >>> jnp.isneginf(jnp.array([-jnp.inf, jnp.inf]))
      Array([ True, False], dtype=bool)
    """
    return _signed_inf("isneginf", x, out, -np.inf)


def iscomplex(x: ArrayLike) -> Array:
    """Whether elements have an imaginary part other than 0.

    Examples:

      >>> jnp.iscomplex(jnp.array([1 + 0j, 1 + 1j]))
      Array([False,  True], dtype=bool)
    """
    x = imag(x)
    return lax.ne(x, zero_like(aval_of(x)))


def isreal(x: ArrayLike) -> Any:
    """Whether elements have the imaginary part 0.

    Examples:

      >>> jnp.isreal(jnp.array([1 + 0j, 1 + 1j]))
      Array([ True, False], dtype=bool)
    """
    x = imag(x)
    return lax.eq(x, zero_like(aval_of(x)))
