"""The tree engine inside jaxlib, under the names that `engine_python` also has.

jaxlib's compiled function dispatch reads arguments with `default_registry`, so a
treedef made here is the very object that it compares in its cache.
"""

from __future__ import annotations

from typing import Any

from jaxlib._jax import pytree as _cpp

NAME = "native"

PyTreeDef = _cpp.PyTreeDef
PyTreeRegistry = _cpp.PyTreeRegistry
SequenceKey = _cpp.SequenceKey
DictKey = _cpp.DictKey
GetAttrKey = _cpp.GetAttrKey
FlattenedIndexKey = _cpp.FlattenedIndexKey

all_leaves = _cpp.all_leaves
treedef_tuple = _cpp.treedef_tuple
default_registry: PyTreeRegistry = _cpp.default_registry()


def flatten_with_keys(tree: Any) -> Any:
    """What the registry's `flatten_one_level_with_keys` returns; jaxlib 0.10.2 names all fields of a namedtuple alike."""
    t, found = type(tree), default_registry.flatten_one_level_with_keys(tree)
    if found is None or found[1] is not t or not isinstance(tree, tuple):
        return found
    return [(GetAttrKey(name), x) for name, x in zip(t._fields, tuple.__iter__(tree))], t
