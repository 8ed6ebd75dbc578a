"""Nested Python containers as trees: flatten them, map over them, register your own.

Everything public of the tree utilities is a name of this package; `bedrax.pytree.tree`
has the short names (`tree.map`). `engine_name` says which engine runs: jaxlib's C++ one
(`native`) or the pure Python one (`python`).
"""

from __future__ import annotations

from .engine import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    PyTreeRegistry,
    SequenceKey,
    default_registry,
    dispatch_registry,
    engine_name,
)
from .functions import (
    Leaf,
    Unspecified,
    all_leaves,
    build_tree,
    make_from_node_data_and_children,
    tree_all,
    tree_broadcast,
    tree_broadcast_leaves,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_reduce_associative,
    tree_structure,
    tree_transpose,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from .partial import Partial
from .paths import (
    KeyEntry,
    KeyPath,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    tree_flatten_with_path,
    tree_leaves_with_path,
)
from .prefix import prefix_errors
from .registration import (
    _registry,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Leaf",
    "Partial",
    "PyTreeDef",
    "PyTreeRegistry",
    "SequenceKey",
    "Unspecified",
    "_registry",
    "all_leaves",
    "build_tree",
    "default_registry",
    "dispatch_registry",
    "engine_name",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "make_from_node_data_and_children",
    "prefix_errors",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_broadcast_leaves",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
