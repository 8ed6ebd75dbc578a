"""Arguments of converted functions as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.tf import tensorflow as tf
from bedrax.tf.types import numpy_dtype, tf_dtype


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
