"""The tree engine inside jaxlib, under the names that `engine_python` also has.

jaxlib's compiled function dispatch reads arguments with `default_registry`, so a
treedef made here is the very object that it compares in its cache.
"""

from __future__ import annotations

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
