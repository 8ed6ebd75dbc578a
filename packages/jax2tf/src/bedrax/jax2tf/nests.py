"""Our containers and keys as nests of TensorFlow: as arguments of `tf.function`, sources of gradients, results.

TensorFlow flattens a value with its ``__tf_flatten__``, and would treat a value without it as a constant. Classes that
are pytree nodes get that method, unless TensorFlow supports them.
"""

from __future__ import annotations

import collections.abc

import numpy as np

from bedrax import pytree
from bedrax.jax2tf.arguments import KeyWords
from bedrax.random.key_array import KeyArray

_seen: set[type] = set()
_NESTS = (tuple, list, collections.abc.Mapping)  # supported by TensorFlow


def install() -> None:
    """Register keys, and the pytree nodes that are registered so far, as nests."""
    for node in [KeyArray, *pytree._registry]:
        if node in _seen:
            continue
        _seen.add(node)
        if issubclass(node, _NESTS) or hasattr(node, "__tf_flatten__"):
            continue
        try:
            if node is KeyArray:
                node.__tf_flatten__ = lambda keys: (keys.dtype, (np.asarray(keys.base),))
                node.__tf_unflatten__ = KeyWords.__tf_unflatten__
                node.__tf_tracing_type__ = _type_of_keys
            else:
                node.__tf_flatten__ = _flatten
                node.__tf_unflatten__ = classmethod(lambda cls, tree, leaves: pytree.tree_unflatten(tree, leaves))
        except TypeError:
            pass  # a class in C, such as that of None


def _flatten(node):
    leaves, tree = pytree.tree_flatten(node)
    return tree, tuple(leaves)


def _type_of_keys(keys, context):
    """The type of keys. Without it TensorFlow would convert keys to a NumPy array, because they have the method."""
    from tensorflow.core.function.trace_type import custom_nest_trace_type, trace_type_builder

    words = trace_type_builder.from_value(np.asarray(keys.base), context)
    return custom_nest_trace_type.CustomNestTraceType(KeyArray, keys.dtype, (words,))
