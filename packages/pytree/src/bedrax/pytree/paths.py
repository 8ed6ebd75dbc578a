"""Key paths: the name of every leaf's position in a tree, and its text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias, TypeVar

from .engine import PyTreeDef, default_registry, flatten_with_keys
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

    Examples:

      >>> jax.tree_util.is_tree_node([1]), jax.tree_util.is_tree_node(1)
      (False, False)
    """
    return default_registry.is_node(typ)


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
    except ValueError as e:
        explain_unflattenable(e, tree, is_leaf, is_leaf_takes_path)
        raise


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The `(key path, leaf)` pairs of `tree`; see `tree_flatten_with_path`.

    Examples:

      >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path([1, {"a": 2}])]
      [('[0]', 1), ("[1]['a']", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


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
