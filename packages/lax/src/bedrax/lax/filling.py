"""Arrays of one value, and types' zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import AbstractValue, ShapedArray, aval_of
from bedrax.core.tracing import pvary_p, trace_state_clean, varying_axes
from bedrax.core.typing import ArrayLike, DTypeLike, ShapeLike
from bedrax.lax.primitives import conversions
from bedrax.lax.primitives.placement import free, moved, placed
from bedrax.lax.primitives.shaping import broadcast_in_dim

__all__ = ["full", "full_like", "zeros_like", "zeros_of"]

_REAL = (int, float, bool)


def full(shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Any = None) -> Array:
    """An array of `shape` filled with a scalar.

    Args:
      shape: sequence of ints.
      fill_value: scalar.
      dtype: default: that of `fill_value` (weak if that is a Python scalar).
      sharding: optional placement of the result.

    Examples:

      >>> lax.full((2, 2), 7.)
      Array([[7., 7.],
             [7., 7.]], dtype=float32, weak_type=True)
    """
    shape = dims.canonical_shape(shape)
    aval = aval_of(fill_value)
    if aval.shape:
        raise TypeError(f"full: fill_value is a scalar, got shape {aval.shape}; use broadcast_in_dim for arrays")
    if dtype is not None:
        if isinstance(dtype, dtypes.ExtendedDType):
            if aval.dtype != dtype:
                if dtypes.is_integer(aval.dtype) or (isinstance(fill_value, float) and fill_value == 0):
                    return dtype.filled(shape, fill_value)
                raise TypeError(
                    f"full: the fill_value of an array of dtype {dtype} has this dtype, or is an integer for the"
                    f" numbers that the elements consist of; got {aval.str_short()}"
                )
            return placed(broadcast_in_dim(fill_value, shape, ()), sharding, "sharding")
        fill_value = _scalar_as(fill_value, aval, dtypes.canonicalize_dtype(dtype))
    return placed(broadcast_in_dim(fill_value, shape, ()), sharding, "sharding")


def _scalar_as(value, aval: ShapedArray, dtype: np.dtype):
    """A scalar with a strong dtype."""
    if dtype == dtypes.float0:
        return np.zeros((), dtypes.float0)
    if aval.dtype == dtype and not aval.weak_type:
        return value
    if type(value) in _REAL and dtype.kind == "f":
        return np.array(value, dtype)
    if isinstance(value, (float, np.floating)) and dtypes.is_integer(dtype):
        return dtypes.as_integers(value, dtype)
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        return np.asarray(value).astype(dtype)
    return conversions.convert_element_type(value, dtype)


def full_like(
    x: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, sharding: Any = None
) -> Array:
    """`full` with the shape and dtype of `x` (an array, or any object with a shape and a dtype).

    Eagerly, a result with the shape of `x` gets its sharding: that of a committed array, or the attribute ``sharding``
    of another object. A result with another shape gets it only if it is one device. In `shard_map`, the result varies
    over the axes over which `x` varies.

    Args:
      x: an array, or any object with a shape and a dtype.
      fill_value: scalar.
      dtype: default: that of `x`.
      shape: default: that of `x`.
      sharding: optional placement of the result.

    Examples:

      >>> lax.full_like(jnp.ones((2, 2)), 3, dtype=int)
      Array([[3, 3],
             [3, 3]], dtype=int32)
    """
    if sharding is None and not isinstance(x, AbstractValue) and trace_state_clean() and getattr(x, "committed", True):
        sharding = getattr(x, "sharding", None)
        if sharding is not None and shape is not None and dims.canonical_shape(shape) != tuple(x.shape):
            sharding = sharding if len(sharding.device_set) == 1 else None
    aval = aval_of(x) if isinstance(x, Array) else x
    split = getattr(aval, "split", None) if sharding is None and shape is None and isinstance(x, Array) else None
    if split is not None:
        return moved(full_like(free(x), fill_value, dtype, aval.shape), split)
    varying = varying_axes(aval)
    if varying:
        whole = full_like(ShapedArray(aval.shape, aval.dtype, aval.weak_type), fill_value, dtype, shape, sharding)
        return pvary_p.bind(whole, axes=varying)
    if shape is None or dtype is None:
        aval = x if hasattr(x, "shape") and hasattr(x, "dtype") else aval_of(x)
        shape = aval.shape if shape is None else shape
        if dtype is None:
            if getattr(aval, "weak_type", False):
                # A weak `x` gives a weak result: a Python scalar of its kind carries that.
                value = aval_of(fill_value)
                if value.dtype == aval.dtype and value.weak_type:
                    return full(shape, fill_value, sharding=sharding)
                weak = conversions.convert_element_type_p.bind(fill_value, new_dtype=aval.dtype, weak_type=True)
                return full(shape, weak, sharding=sharding)
            dtype = aval.dtype
    return full(shape, fill_value, dtype, sharding=sharding)


def zeros_of(aval: Any) -> Any:
    """Zeros of any array type, `float0` included; of a library's type its `vspace_zero`."""
    if aval.is_high:
        return aval.vspace_zero()
    dtype = aval.dtype
    if dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.filled(aval.shape, 0)
    zeros = broadcast_in_dim(np.zeros((), dtype), aval.shape, ())
    return zeros if aval.split is None else moved(zeros, aval.split)


def zeros_like(x: Any) -> Array:
    """Zeros of the shape and dtype of a value."""
    return zeros_of(aval_of(x))
