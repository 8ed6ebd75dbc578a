"""Samplers made directly of bits: uniform floats and integers, and booleans."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike, Shape
from bedrax.lax.choices import one_of
from bedrax.lax.primitives.placement import placed
from bedrax.random.arguments import as_dtype, broadcast_to, float_dtype, joint_shape, shape_of
from bedrax.random.keys import raw_bits, single_key
from bedrax.random.primitives import random_split_p

__all__ = ["bernoulli", "rademacher", "randint", "uniform"]


# ---- uniform floats ----


def _mantissa_bits(dtype: np.dtype) -> int:
    return ml_dtypes.finfo(dtype).nmant


def unit_floats(key: ArrayLike, shape: tuple[Any, ...], dtype: np.dtype) -> Array:
    """Multiples of the dtype's spacing at 1, uniform in [0, 1).

    Random bits are the mantissa of a float of exponent 0, which lies in [1, 2).
    """
    mantissa = _mantissa_bits(dtype)
    width = dtype.itemsize * 8
    drawn = 8 if mantissa < 8 else width  # no more bits than the mantissa takes
    word = np.dtype(f"uint{width}")
    bits = raw_bits(key, drawn, shape)
    if drawn != width:
        bits = lax.convert_element_type(bits, word)
    one = np.ones((), dtype)
    bits = lax.shift_right_logical(bits, word.type(drawn - mantissa))
    return lax.sub(lax.bitcast_convert_type(lax.bitwise_or(bits, one.view(word)), dtype), one)


def uniform_floats(key: ArrayLike, shape: tuple[Any, ...], dtype: np.dtype, minval: Any, maxval: Any) -> Array:
    """Uniform in [minval, maxval), which are of `dtype` and broadcast to `shape`."""
    unit = unit_floats(key, shape, dtype)
    minval, maxval = (broadcast_to(as_dtype(x, dtype), shape) for x in (minval, maxval))
    # rounding could give less than minval, where that is close to maxval
    return lax.max(minval, lax.add(lax.mul(unit, lax.sub(maxval, minval)), minval))


_unit = one_program(unit_floats, static=("shape", "dtype"), everywhere=True)
_uniform = one_program(uniform_floats, static=("shape", "dtype"), everywhere=True)


def uniform(
    key: ArrayLike,
    shape: tuple[int, ...] = (),
    dtype: np.dtype[Any] | type | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniformly distributed floats in [minval, maxval).

    Args:
      key: a single key.
      shape: of the result.
      dtype: a float dtype; default: the default float.
      minval, maxval: bounds, which broadcast to `shape`.
      out_sharding: placement of the result.

    Examples:

      >>> jax.random.uniform(jax.random.key(0), (3,))
      Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
      >>> jax.random.uniform(jax.random.key(0), (2,), minval=10., maxval=20.)
      Array([19.47667 , 19.785799], dtype=float32)
    """
    key, _ = single_key("uniform", key)
    shape, dtype = shape_of(shape), float_dtype("uniform", dtype)
    if type(minval) is float and minval == 0.0 and type(maxval) is float and maxval == 1.0:
        out = _unit.of(shape, dtype)(key)
    else:
        out = _uniform(key, shape, dtype, minval, maxval)
    return out if out_sharding is None else placed(out, out_sharding)


# ---- integers ----


@one_program(static=("shape", "dtype"), everywhere=True)
def _randint(key, shape, dtype, minval, maxval):
    # Two independent words a and b make one number (2^w a + b) mod span of twice the width, whose bias is negligible;
    # 2^w mod span is computed as the square of 2^(w/2) mod span.
    width = max(dtype.itemsize * 8, 32)
    signed = np.dtype(f"{'u' if dtype.kind == 'u' else ''}int{width}")
    word = np.dtype(f"uint{width}")
    limits = dtypes.iinfo(dtype)
    low, above_low = _clamped(minval, limits, signed)
    high, above_high = _clamped(maxval, limits, signed)
    low, high = broadcast_to(low, shape), broadcast_to(high, shape)
    above_low, above_high = broadcast_to(above_low, shape), broadcast_to(above_high, shape)
    empty = lax.ge(low, high)
    span = lax.sub(lax.convert_element_type(high, word), lax.convert_element_type(low, word))
    one = np.ones((), word)
    span = lax.select(empty, lax.full(shape, 1, word), span)
    # a maxval above the dtype's range lets its last number in; a span beyond the word's range wraps to 0: all numbers
    span = lax.select(lax.bitwise_and(above_high, lax.bitwise_not(above_low)), _grown(span, empty, one), span)
    half = word.type(2 ** (width // 2))
    multiplier = lax.rem(lax.full(shape, half, word), span)
    multiplier = lax.rem(lax.mul(multiplier, multiplier), span)
    keys = split_keys(key, 2)
    a, b = (raw_bits(k, width, shape) for k in keys)
    offset = lax.add(lax.mul(lax.rem(a, span), multiplier), lax.rem(b, span))
    offset = lax.rem(offset, span)
    out = lax.add(low, lax.convert_element_type(offset, signed))
    return lax.convert_element_type(out, dtype) if signed != dtype else out


def _grown(span, empty, one):
    return lax.select(empty, span, lax.add(span, broadcast_to(one, aval_of(span).shape)))


def _clamped(bound, limits, dtype):
    """A bound as `dtype`, clamped to `limits`, and whether it was above them."""
    aval = aval_of(bound)
    if not dtypes.is_integer(aval.dtype):
        bound = lax.convert_element_type(bound, dtypes.default_int_dtype())
        aval = aval_of(bound)
    own = dtypes.iinfo(aval.dtype)
    shape = aval.shape
    above = lax.full(shape, False, np.dtype(bool))
    if own.min < limits.min:
        bound = lax.max(bound, np.asarray(limits.min).astype(aval.dtype))
    if own.max > limits.max:
        above = lax.gt(bound, np.asarray(limits.max).astype(aval.dtype))
        bound = lax.min(bound, np.asarray(limits.max).astype(aval.dtype))
    return lax.convert_element_type(bound, dtype), above


def split_keys(key: ArrayLike, n: int) -> list[Any]:
    """`n` new keys, as a list."""
    keys = random_split_p.bind(key, impl=key.aval.dtype.implementation, shape=(n,))
    return [lax.index_in_dim(keys, i, 0, keepdims=False) for i in range(n)]


def randint(
    key: ArrayLike,
    shape: tuple[int, ...],
    minval: ArrayLike,
    maxval: int,
    dtype: np.dtype[Any] | type | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniformly distributed integers in [minval, maxval).

    Args:
      key: a single key.
      shape: of the result.
      minval, maxval: integers that broadcast to `shape`. Bounds outside the dtype's range are brought into it. Where
        ``minval >= maxval`` the result is `minval`.
      dtype: an integer dtype; default: the default integer.
      out_sharding: placement of the result.

    Examples:

      >>> jax.random.randint(jax.random.key(0), (5,), minval=0, maxval=10)
      Array([9, 0, 2, 3, 1], dtype=int32)
    """
    key, _ = single_key("randint", key)
    dtype = dtypes.default_int_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "randint")
    if not dtypes.is_integer(dtype):
        raise TypeError(f"randint: dtype is an integer dtype, got {dtype}")
    shape = joint_shape(shape, minval, maxval)
    return placed(_randint(key, shape, dtype, minval, maxval), out_sharding)


# ---- yes or no ----


def _bernoulli_low(key, shape, p):
    return lax.lt(unit_floats(key, shape, aval_of(p).dtype), broadcast_to(p, shape))


def _bernoulli_high(key, shape, p):
    # a uniform number of twice the resolution is a coarse one and a fine one below its spacing
    dtype = aval_of(p).dtype
    coarse, fine = _two_unit_floats(key, shape, dtype)
    spacing = np.asarray(2.0 ** -_mantissa_bits(dtype)).astype(dtype)
    return lax.lt(lax.mul(fine, spacing), lax.sub(broadcast_to(p, shape), coarse))


def _two_unit_floats(key, shape, dtype) -> list:
    both = unit_floats(key, (2, *shape), dtype)
    return [lax.index_in_dim(both, i, 0, keepdims=False) for i in range(2)]


_low = one_program(_bernoulli_low, static=("shape",), everywhere=True)
_high = one_program(_bernoulli_high, static=("shape",), everywhere=True)


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: tuple[int, ...] | None = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Array:
    """Booleans that are True with probability `p`.

    Args:
      key: a single key.
      p: float, or array of floats.
      shape: of the result, which `p` broadcasts to; default: the shape of `p`.
      mode: ``"low"`` compares `p` with uniform floats of its dtype, whose resolution bounds the precision of small
        probabilities; ``"high"`` draws twice the bits.
      out_sharding: placement of the result.

    Examples:

      >>> jax.random.bernoulli(jax.random.key(0), 0.25, (6,))
      Array([False, False, False, False, False,  True], dtype=bool)
    """
    one_of("bernoulli", "mode", mode, ("high", "low"))
    key, _ = single_key("bernoulli", key)
    aval = aval_of(p)
    if not dtypes.is_floating(aval.dtype):
        raise TypeError(f"bernoulli: p holds floats, got {aval.dtype}")
    shape = joint_shape(shape, p)
    return placed((_low if mode == "low" else _high)(key, shape, as_dtype(p, aval.dtype)), out_sharding)


def signs(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Each of -1 and 1 with probability one half."""
    half = np.asarray(0.5, dtypes.default_float_dtype())
    yes = lax.convert_element_type(_bernoulli_low(key, shape, half), dtype)
    two, one = (np.asarray(n).astype(dtype) for n in (2, 1))
    return lax.sub(lax.mul(yes, two), one)


_rademacher = one_program(signs, static=("shape", "dtype"), everywhere=True)


def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Any:
    """Each of -1 and 1 with probability one half.

    Args:
      key: a single key.
      shape: of the result.
      dtype: any numeric dtype; default: the default integer.
      out_sharding: placement of the result.

    Examples:

      >>> jax.random.rademacher(jax.random.key(0), (5,))
      Array([-1, -1,  1,  1, -1], dtype=int32)
    """
    key, _ = single_key("rademacher", key)
    dtype = dtypes.default_int_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "rademacher")
    return placed(_rademacher(key, shape_of(shape), dtype), out_sharding)
