"""Key paths: the name of every leaf's position in a tree, and its text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias, TypeVar

from .engine import FlattenedIndexKey, PyTreeDef, default_registry, flatten_with_keys
from .sorting import UNSORTABLE

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath: TypeAlias = tuple[Any, ...]

_flatten_with_path = default_registry.flatten_with_path


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Prints a key path.

    Args:
      keys: a tuple of keys, from `tree_flatten_with_path`.
      simple: print only the key itself (`a`), not its notation (`['a']`, `.a`).
      separator: the text between keys.

    >>> from bedrax.pytree import DictKey, GetAttrKey, SequenceKey
    >>> keystr((GetAttrKey("params"), SequenceKey(0), DictKey("w")))
    ".params[0]['w']"
    >>> keystr((GetAttrKey("params"), SequenceKey(0), DictKey("w")), simple=True, separator="/")
    'params/0/w'
    """
    return separator.join([_simple_name(k) if simple else str(k) for k in keys])


def _simple_name(key: Any) -> str:
    for field in ("key", "idx", "name"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


def is_tree_node(typ: type) -> bool:
    """Whether instances of `typ` are nodes of a pytree.

    Args:
      typ: a type. Any other object is no node.

    Examples:

      >>> jax.tree_util.is_tree_node(list), jax.tree_util.is_tree_node(int), jax.tree_util.is_tree_node([1])
      (True, False, False)
    """
    return isinstance(typ, type) and default_registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children and the metadata of the node at the root of `tree`.

    Raises:
      ValueError: `tree` is a leaf.

    Examples:

      >>> children, keys = jax.tree_util.flatten_one_level({"a": [1, 2], "b": 3})
      >>> list(children)
      [[1, 2], 3]
    """
    result = default_registry.flatten_one_level(tree)
    if result is None:
        raise ValueError(f"flatten_one_level needs a pytree node, got a leaf of type {type(tree)}.")
    return result


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Like `flatten_one_level`, with `(key, child)` pairs.

    Examples:

      >>> pairs, _ = jax.tree_util.flatten_one_level_with_keys({"a": [1, 2], "b": 3})
      >>> [str(key) for key, child in pairs]
      ["['a']", "['b']"]
    """
    result = flatten_with_keys(tree)
    if result is None:
        raise ValueError(f"flatten_one_level_with_keys needs a pytree node, got a leaf of type {type(tree)}.")
    return result


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Flattens `tree` to `(key path, leaf)` pairs and a treedef.

    Args:
      is_leaf: whether a subtree is a leaf.
      is_leaf_takes_path: call `is_leaf(path, subtree)` instead of `is_leaf(subtree)`.

    Examples:

      >>> pairs, structure = jax.tree.flatten_with_path({"a": [10, 20]})
      >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in pairs]
      [("['a'][0]", 10), ("['a'][1]", 20)]
    """
    predicate = is_leaf if is_leaf is None or is_leaf_takes_path else lambda _, x: is_leaf(x)
    try:
        return _flatten_with_path(tree, predicate)
    except (ValueError, SystemError) as e:
        explain_unflattenable(e, tree, is_leaf, is_leaf_takes_path)
        raise


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a tree, from left to right, each with the path of keys that leads to it.

    Args:
      tree: containers of containers of leaves.
      is_leaf: ``node -> bool``: true for a node that counts as a leaf.
      is_leaf_takes_path: `is_leaf` is called with the path, and the node.

    Returns:
      A list of pairs ``(path, leaf)``. A path is a tuple of keys; `keystr` prints it.

    Examples:

      >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path([1, {"a": 2}])]
      [('[0]', 1), ("[1]['a']", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


_PLACE = object()


def skeleton(treedef: PyTreeDef) -> Any:
    """The tree of a structure with a bare ``object()`` for each leaf.

    A class that looks at its leaves when it is flattened takes these for data, as it does in `vmap`. It would take a
    number for a part of the structure.

    Examples:

      >>> from bedrax import pytree
      >>> tree = pytree.skeleton(pytree.tree_structure({"a": [1, 2]}))
      >>> [type(leaf) is object for leaf in tree["a"]]
      [True, True]
    """
    return treedef.unflatten([_PLACE] * treedef.num_leaves)


def leaf_paths(treedef: PyTreeDef) -> list[KeyPath]:
    """The key path of each leaf of a structure.

    Below a class that finds other leaves in its `skeleton`, or cannot be built of it, the keys are the positions of
    children.

    Examples:

      >>> from bedrax import pytree
      >>> [pytree.keystr(path) for path in pytree.leaf_paths(pytree.tree_structure({"a": [1, 2]}))]
      ["['a'][0]", "['a'][1]"]
    """
    try:
        pairs, _ = tree_flatten_with_path(skeleton(treedef))
    except Exception:  # a class of the user refuses leaves that are no data
        pairs = []
    if len(pairs) == treedef.num_leaves:
        return [path for path, _ in pairs]
    children = treedef.children()
    make = PyTreeDef.from_node_data_and_children
    leaf = make(default_registry, None, [])
    node = make(default_registry, treedef.node_data(), [leaf] * len(children))
    try:
        found = flatten_with_keys(skeleton(node))
    except Exception:
        found = None
    keys = [] if found is None else [key for key, _ in found[0]]
    if len(keys) != len(children):
        keys = [FlattenedIndexKey(i) for i in range(len(children))]
    return [(key, *path) for key, child in zip(keys, children, strict=True) for path in leaf_paths(child)]


def explain_unflattenable(
    error: ValueError | SystemError,
    tree: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> None:
    """Raise `error`, which the flattening of `tree` raised for unsortable keys or too deep nesting, with the position and the keys."""
    if isinstance(error, SystemError):  # the error of jaxlib's registry
        raise RecursionError(
            "the tree is nested too deeply: does a container hold itself? A node of a type of your own may hold a long"
            " chain as a flat list of children"
        ) from None
    if not str(error).startswith(UNSORTABLE):
        return
    agenda: list[tuple[tuple[Any, ...], Any]] = [((), tree)]
    while agenda:
        path, x = agenda.pop()
        if not is_tree_node(type(x)):
            continue
        if is_leaf is not None and (is_leaf(path, x) if is_leaf_takes_path else is_leaf(x)):
            continue
        try:
            pairs, _ = flatten_one_level_with_keys(x)
        except ValueError:
            types = ", ".join(sorted({type(k).__name__ for k in x}))
            where = f"at {keystr(path)}" if path else "at the root"
            raise ValueError(
                f"{UNSORTABLE} The {type(x).__name__} {where} has keys {list(x)!r} (types: {types}). Use keys that "
                "compare with <, or an OrderedDict, whose own order is kept."
            ) from error
        agenda += [((*path, key), child) for key, child in pairs][::-1]
