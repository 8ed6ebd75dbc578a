"""Whether arrays are equal or close."""

from __future__ import annotations

from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.operators import absolute, add, bitwise_and, bitwise_or, equal, less_equal, multiply, subtract
from bedrax.lax.promotion import broadcast, promote_dtypes
from bedrax.numpy.creation import asarray
from bedrax.numpy.number_queries import isfinite, isnan
from bedrax.numpy.reductions import all as all_


@one_program(static=("equal_nan",))
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether ``|a - b| <= atol + rtol * |b|``, elementwise.

    Args:
      a, b: arrays; infinities and keys are close to themselves only.
      rtol, atol: the tolerances.
      equal_nan: whether nan is close to nan.

    Examples:

      >>> jnp.isclose(jnp.array([1., 1., jnp.nan]), jnp.array([1 + 1e-7, 1.1, jnp.nan]))
      Array([ True, False, False], dtype=bool)
    """
    x, y = promote_dtypes("isclose", (a, b))
    dtype = aval_of(x).dtype
    if dtypes.is_integer(dtype) or dtype == np.bool_:
        # Differences of integers overflow; floats hold tolerances.
        kind = dtypes.default_float_dtype()
        close = _close(lax.convert_to(x, kind, False), lax.convert_to(y, kind, False), rtol, atol)
        return lax.asarray(bitwise_or(equal(x, y), close))
    if not dtypes.is_inexact(dtype):
        return equal(x, y)  # PRNG keys, which have no differences
    finite = bitwise_and(isfinite(x), isfinite(y))
    out = bitwise_or(equal(x, y), bitwise_and(_close(x, y, rtol, atol), finite))
    if equal_nan:
        out = bitwise_or(out, bitwise_and(isnan(x), isnan(y)))
    return lax.asarray(out)


def _close(x: Any, y: Any, rtol: Any, atol: Any) -> Any:
    real = dtypes.to_real_dtype(aval_of(x).dtype)
    cast = lambda v: (
        np.asarray(v).astype(real)[()]
        if isinstance(v, (int, float, np.ndarray))
        else (lax.convert_element_type(v, real))
    )
    return less_equal(absolute(subtract(x, y)), add(cast(atol), multiply(cast(rtol), absolute(y))))


@one_program(static=("equal_nan",))
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Return whether all elements of two arrays are close: ``abs(a - b) <= atol + rtol * abs(b)``.

    Args:
      a, b: arrays or scalars, broadcast against each other.
      rtol, atol: the relative and the absolute tolerance.
      equal_nan: NaN is close to NaN.

    Returns:
      A boolean array of shape ().

    Examples:

      >>> x = jnp.array([1., 2., jnp.nan])
      >>> jnp.allclose(x, x)
      Array(False, dtype=bool)
      >>> jnp.allclose(x, x + 1e-6, equal_nan=True)
      Array(True, dtype=bool)
    """
    return all_(isclose(a, b, rtol, atol, equal_nan))


def _equal(x: Any, y: Any, equal_nan: bool) -> Array:
    same = equal(x, y)
    if equal_nan and dtypes.is_inexact(x.dtype) and dtypes.is_inexact(y.dtype):
        same = bitwise_or(same, bitwise_and(isnan(x), isnan(y)))
    return lax.convert_to(all_(same), dtypes.bool_dtype)


@one_program(static=("equal_nan",))
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Return whether two arrays have the same shape and equal elements.

    Args:
      a1, a2: arrays, numbers or nested lists.
      equal_nan: NaN equals NaN.

    Returns:
      A boolean array of shape ().

    Examples:

      >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
      Array(True, dtype=bool)
      >>> jnp.array_equal(jnp.array([1]), jnp.array([1, 1]))
      Array(False, dtype=bool)
    """
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return lax.asarray(np.False_)
    return _equal(x, y, equal_nan)


@one_program
def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays have the same elements after broadcasting.

    Args:
      a1, a2: arrays, numbers or nested lists.

    Returns:
      A boolean array of shape (): False if the shapes do not broadcast.

    Examples:

      >>> jnp.array_equiv(jnp.array([1]), jnp.array([[1, 1], [1, 1]]))
      Array(True, dtype=bool)
    """
    x, y = asarray(a1), asarray(a2)
    try:
        x, y = broadcast("array_equiv", (x, y))
    except TypeError:
        return lax.asarray(np.False_)
    return _equal(x, y, False)
