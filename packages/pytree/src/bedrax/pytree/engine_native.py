"""The tree engine inside jaxlib, under the names that `engine_python` also has.

jaxlib's dispatch of compiled functions flattens arguments with `default_registry`, so a
treedef of this engine is the same object that its cache compares.
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
    """The result of the registry's `flatten_one_level_with_keys`; jaxlib 0.10.2 has one name for all fields of a
    namedtuple."""
    t, found = type(tree), default_registry.flatten_one_level_with_keys(tree)
    if found is None or found[1] is not t or not isinstance(tree, tuple):
        return found
    return [(GetAttrKey(name), x) for name, x in zip(t._fields, tuple.__iter__(tree))], t
