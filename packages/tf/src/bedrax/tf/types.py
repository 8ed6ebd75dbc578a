"""Conversion of dtypes, shapes and constants to TensorFlow's, and back."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapedArray
from bedrax.core.typing import DTypeLike
from bedrax.lax import element_types
from bedrax.tf import tensorflow as tf


def tf_dtype(dtype: DTypeLike) -> Any:
    """TensorFlow's dtype for ours.

    Keys are represented by their words, and zeros of int32 represent the tangents of integers.

    Raises:
      TypeError: TensorFlow has no such dtype.
    """
    if dtype == dtypes.float0:
        return tf.int32
    if dtypes.is_extended(dtype):
        dtype = dtype.element_dtype
    try:
        return tf.dtypes.as_dtype(np.dtype(dtype))
    except TypeError:
        raise TypeError(f"TensorFlow has no dtype for {dtypes.short_name(dtype)} ({dtype})") from None


@functools.lru_cache(256)
def numpy_dtype(dtype: DTypeLike) -> np.dtype:
    """Our dtype for TensorFlow's.

    Raises:
      TypeError: arrays of strings, resources, variants or quantized types have no counterpart.
    """
    dtype = tf.dtypes.as_dtype(dtype)
    if dtype in (tf.string, tf.resource, tf.variant) or dtype.is_quantized:
        raise TypeError(f"arrays of TensorFlow dtype {dtype.name} have no counterpart")
    return np.dtype(dtype.as_numpy_dtype)


def static_shape(aval: ShapedArray) -> list[Any]:
    """The shape with None for symbolic dimensions, with the trailing axes of keys."""
    shape = [int(d) if dims.is_constant_dim(d) else None for d in aval.shape]
    return shape + list(aval.dtype.element_shape) if dtypes.is_extended(aval.dtype) else shape


def tensor_spec(aval: ShapedArray) -> Any:
    """The `tf.TensorSpec` of an array type; symbolic dimensions are unknown ones."""
    return tf.TensorSpec(static_shape(aval), tf_dtype(aval.dtype))


def physical(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Types with keys replaced by their words."""
    return [element_types.base_aval(a) for a in avals]


def constant(value: Any, dtype: Any = None) -> Any:
    """A NumPy array or scalar as a constant tensor of dtype `dtype` (ours)."""
    value = np.asarray(value, dtype=None if dtype is None or dtype == dtypes.float0 else dtype)
    if value.dtype == dtypes.float0 or dtype == dtypes.float0:
        value = np.zeros(value.shape, np.int32)
    return tf.constant(value, dtype=tf_dtype(value.dtype))


def constant_value(value: Any, aval: ShapedArray) -> np.ndarray:
    """A concrete array of any kind in TensorFlow's form: keys as their words, tangents of integers as zeros of
    int32."""
    if dtypes.is_extended(aval.dtype):
        return np.asarray(aval.dtype.physical_value(value))
    if aval.dtype == dtypes.float0:
        return np.zeros(np.shape(value), np.int32)
    return np.asarray(value, aval.dtype)
