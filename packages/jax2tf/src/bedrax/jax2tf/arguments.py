"""Arguments of converted functions as tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.core.tracing import Tracer
from bedrax.core.typing import DTypeLike
from bedrax.tf import tensorflow as tf
from bedrax.tf.types import numpy_dtype, tf_dtype


class KeyWords:
    """Random keys with a tensor as words: an array of keys inside a `tf.function`."""

    __slots__ = ("dtype", "tensor")

    def __init__(self, tensor: Any, dtype: Any) -> None:
        self.tensor: Any = tensor
        self.dtype: Any = dtype

    def __tf_flatten__(self) -> Any:
        return self.dtype, (self.tensor,)

    @classmethod
    def __tf_unflatten__(cls, dtype: DTypeLike, parts: Any) -> Any:
        return KeyWords(parts[0], dtype)


class Argument(NamedTuple):
    """A leaf of the arguments: its tensor, and its dtype as an array (for keys, the tensor has the words)."""

    tensor: Any
    dtype: Any


def without_wrappers(tree: Any) -> Any:
    """The argument with TensorFlow's containers replaced by Python's.

    `tf.Module` replaces a container that is assigned to an attribute by a tracking wrapper.
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


def to_tensor(x: Any) -> Argument:
    """A leaf of a converted function's arguments as a tensor (variables stay variables).

    Python scalars get our default dtypes, and 64-bit values are narrowed unless
    ``jax_enable_x64`` is set, as for all functions of arrays.

    Raises:
      ValueError: the leaf is a tracer of this system, or its rank is unknown.
      TypeError: it is not an array.
    """
    if isinstance(x, KeyWords):
        return Argument(x.tensor, x.dtype)
    if isinstance(x, Tracer):
        raise ValueError(
            f"{OUTSIDE} It got the value {x} of one: call the original function instead, or wrap the converted"
            " one with jax2tf.call_tf."
        )
    if isinstance(x, tf.TensorSpec):
        raise TypeError(f"a converted function takes tensors, got {x}")
    is_tensor = isinstance(x, tf.Tensor | tf.Variable)
    if not is_tensor and (hasattr(x, "__tf_tensor__") or isinstance(x, tf.IndexedSlices)):
        x, is_tensor = tf.convert_to_tensor(x), True  # NumPy would read a variable of Keras without its gradient
    if is_tensor:
        if x.shape.rank is None:
            raise ValueError(f"jax2tf.convert: the rank of every argument must be known, but that of {x} is not")
        dtype = dtypes.canonicalize_dtype(numpy_dtype(x.dtype))
        wanted = tf_dtype(dtype)
        return Argument(tf.cast(x, wanted) if x.dtype != wanted else x, dtype)
    if dtypes.is_python_scalar(x):
        kind = dtypes.scalar_type_of(x)  # of a subclass, such as an enum.IntEnum, too
        dtype = dtypes.python_scalar_dtype(kind)
        return Argument(tf.constant(kind(x), dtype=tf_dtype(dtype)), dtype)
    if dtypes.is_extended(getattr(x, "dtype", None)):
        return Argument(tf.constant(np.asarray(x.dtype.physical_value(x))), x.dtype)
    x = np.asarray(x)
    dtype = aval_of(x).dtype  # TensorFlow would accept texts
    return Argument(tf.constant(x, dtype=tf_dtype(dtype)), dtype)


OUTSIDE = "jax2tf.convert must be used outside all JAX transformations: a converted function is one of TensorFlow."


def outer_shape(argument: Argument) -> tuple[Any, ...]:
    """The shape as an array; None for unknown sizes."""
    shape = tuple(argument.tensor.shape)
    if dtypes.is_extended(argument.dtype):
        return shape[: len(shape) - len(argument.dtype.element_shape)]
    return shape
