"""The order of a dict's children: its sorted keys, and what to say when they do not sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

UNSORTABLE = "Comparator raised exception while sorting pytree dictionary keys."


def sorted_keys(tree: dict) -> list:
    """The keys of `tree` in order.

    Raises:
      ValueError: they do not compare with each other.
    """
    try:
        return sorted(tree)
    except Exception as e:
        raise ValueError(UNSORTABLE) from e


def explain_unsortable(
    error: ValueError, tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> None:
    """Where flattening `tree` gave an `error` about unsortable keys, raises one that says where and which."""
    if not str(error).startswith(UNSORTABLE):
        return
    from .paths import flatten_one_level_with_keys, is_tree_node, keystr

    agenda: list[tuple[tuple, Any]] = [((), tree)]
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
