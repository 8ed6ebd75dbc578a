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


def explained(error: ValueError, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> ValueError:
    """`error` of flattening `tree`; when it is about unsortable keys, one that says where and which."""
    if not str(error).startswith(UNSORTABLE):
        return error
    from .paths import flatten_one_level_with_keys, is_tree_node, keystr

    agenda: list[tuple[tuple, Any]] = [((), tree)]
    while agenda:
        path, x = agenda.pop()
        if not is_tree_node(type(x)) or (is_leaf is not None and is_leaf(x)):
            continue
        try:
            pairs, _ = flatten_one_level_with_keys(x)
        except ValueError:
            types = ", ".join(sorted({type(k).__name__ for k in x}))
            where = f"at {keystr(path)}" if path else "at the root"
            return ValueError(
                f"{UNSORTABLE} The {type(x).__name__} {where} has keys {list(x)!r} (types: {types}). Use keys that "
                "compare with <, or an OrderedDict, whose own order is kept."
            )
        agenda += [((*path, key), child) for key, child in pairs][::-1]
    return error
