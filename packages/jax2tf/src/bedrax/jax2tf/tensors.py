"""Helpers of rules for tensors: constants like another tensor, axes, shapes in TensorFlow's form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.typing import ArrayLike
from bedrax.tf import tensorflow as tf


def lowest(np_dtype: Any) -> np.ndarray:
    """The identity of max: the least value of a real dtype."""
    return _extreme(np_dtype, "min", -np.inf)


def highest(np_dtype: Any) -> np.ndarray:
    """The identity of min: the greatest value of a real dtype."""
    return _extreme(np_dtype, "max", np.inf)


def _extreme(np_dtype, which: str, infinite: float):
    np_dtype = np.dtype(np_dtype)
    if np_dtype == np.bool_:
        return np.asarray(which == "max")
    if dtypes.is_integer(np_dtype):
        return np.asarray(getattr(dtypes.iinfo(np_dtype), which)).astype(np_dtype)
    return np.asarray(infinite).astype(np_dtype)


def np_dtype(x: ArrayLike) -> np.dtype:
    """The NumPy dtype of a tensor."""
    return np.dtype(x.dtype.as_numpy_dtype)


def scalar(value: Any, like: Any) -> Any:
    """A constant of the dtype of `like`."""
    return tf.constant(np.asarray(value).astype(np_dtype(like)), like.dtype)


def static(x: ArrayLike) -> np.ndarray | None:
    """The value of a tensor that is a constant of the graph, or None."""
    from tensorflow.python.framework import tensor_util

    return tensor_util.constant_value(x)


def move(x: ArrayLike, source: int, destination: int) -> Any:
    """Move an axis to another position: a transpose, unless it is there already."""
    if source == destination:
        return x
    order = [d for d in range(x.shape.rank) if d != source]
    order.insert(destination, source)
    return tf.transpose(x, order)


def transpose(x: ArrayLike, permutation: Sequence[int]) -> Any:
    """`tf.transpose` unless the permutation is the identity."""
    permutation = list(permutation)
    return x if permutation == list(range(len(permutation))) else tf.transpose(x, permutation)


def product(ctx: Any, sizes: Sequence[Any]) -> Any:
    """A product of dimensions as an int or a scalar int32 tensor."""
    return ctx.dim(dims.size(sizes))


def vector(sizes: Sequence[Any]) -> Any:
    """A shape of ints and scalar tensors, in TensorFlow's form."""
    if all(isinstance(n, int) for n in sizes):
        return list(sizes)
    return tf.stack(list(sizes))


def as_list(x: Any) -> list[Any]:
    """Results as a list; TensorFlow returns a single one without a list."""
    return list(x) if isinstance(x, list | tuple) else [x]
