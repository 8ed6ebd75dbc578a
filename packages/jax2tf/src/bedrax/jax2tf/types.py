"""Types across the border: dtypes, shapes and constants of TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import dims, dtypes, element_types
from bedrax.core.avals import ShapedArray


def tf_dtype(dtype) -> Any:
    """TensorFlow's dtype for ours.

    Raises:
      TypeError: TensorFlow has no such dtype.
    """
    import tensorflow as tf

    if dtype == dtypes.float0:
        return tf.int32  # the tangent type of integers has no counterpart; zeros of int32 stand for it
    if dtypes.is_extended(dtype):
        dtype = dtype.element_dtype  # keys travel as their words
    try:
        return tf.dtypes.as_dtype(np.dtype(dtype))
    except TypeError:
        raise TypeError(f"TensorFlow has no dtype for {dtypes.short_name(dtype)} ({dtype})") from None


def numpy_dtype(dtype) -> np.dtype:
    """Our dtype for TensorFlow's.

    Raises:
      TypeError: arrays of strings, resources, variants or quantized types have no counterpart.
    """
    import tensorflow as tf

    dtype = tf.dtypes.as_dtype(dtype)
    if dtype in (tf.string, tf.resource, tf.variant) or dtype.is_quantized:
        raise TypeError(f"arrays of TensorFlow dtype {dtype.name} have no counterpart")
    return np.dtype(dtype.as_numpy_dtype)


def constant(value: Any, dtype: Any = None) -> Any:
    """A NumPy array or scalar as a constant tensor of dtype `dtype` (ours)."""
    import tensorflow as tf

    value = np.asarray(value, dtype=None if dtype is None or dtype == dtypes.float0 else dtype)
    if value.dtype == dtypes.float0 or dtype == dtypes.float0:
        value = np.zeros(value.shape, np.int32)
    return tf.constant(value, dtype=tf_dtype(value.dtype))


def constant_of(value: Any, aval: ShapedArray) -> Any:
    """A concrete array of any kind as a constant tensor."""
    if dtypes.is_extended(aval.dtype):
        return constant(np.asarray(aval.dtype.physical_value(value)))
    return constant(np.asarray(value), aval.dtype)


def static_shape(aval: ShapedArray) -> list:
    """The shape with None for symbolic dimensions, keys' trailing axes included."""
    shape = [int(d) if dims.is_constant_dim(d) else None for d in aval.shape]
    return shape + list(aval.dtype.element_shape) if dtypes.is_extended(aval.dtype) else shape


def physical(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Types with keys replaced by their words."""
    return [element_types.base_aval(a) for a in avals]


def without_wrappers(tree: Any) -> Any:
    """The argument with TensorFlow's containers replaced by Python's.

    A container assigned to an attribute of a `tf.Module` is replaced there by a tracking wrapper.
    """
    if type(tree).__module__.startswith("tensorflow."):
        if isinstance(tree, dict):
            return {k: without_wrappers(v) for k, v in tree.items()}
        if isinstance(tree, list):
            return [without_wrappers(v) for v in tree]
        if isinstance(tree, tuple):
            inner = getattr(tree, "__wrapped__", tree)
            made = [without_wrappers(v) for v in tree]
            return type(inner)(*made) if hasattr(inner, "_fields") else tuple(made)
    elif type(tree) is dict:
        return {k: without_wrappers(v) for k, v in tree.items()}
    elif type(tree) in (list, tuple):
        return type(tree)(without_wrappers(v) for v in tree)
    return tree


def to_tensor(x: Any) -> Any:
    """A leaf of a converted function's argument as a tensor (variables stay variables).

    Python scalars take our default dtypes, and 64-bit values are narrowed unless
    ``jax_enable_x64`` is set, as for any function of ours.
    """
    import tensorflow as tf

    if not isinstance(x, tf.Tensor | tf.Variable):
        if dtypes.is_python_scalar(x):
            return tf.constant(x, dtype=tf_dtype(dtypes.python_scalar_dtype(type(x))))
        if not hasattr(x, "dtype") or not hasattr(x, "shape"):
            x = np.asarray(x)
        if isinstance(x, tf.TensorSpec):
            raise TypeError(f"a converted function takes tensors, got {x}")
        return tf.constant(np.asarray(x), dtype=tf_dtype(dtypes.canonicalize_dtype(np.asarray(x).dtype)))
    wanted = tf_dtype(dtypes.canonicalize_dtype(numpy_dtype(x.dtype)))
    return tf.cast(x, wanted) if x.dtype != wanted else x
