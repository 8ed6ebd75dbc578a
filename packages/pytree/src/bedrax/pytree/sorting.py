"""The order of a dict's children: its sorted keys."""

from __future__ import annotations

from typing import Any

UNSORTABLE = "Comparator raised exception while sorting pytree dictionary keys."


def sorted_keys(tree: dict[Any, Any]) -> list[Any]:
    """The keys of `tree` in order.

    Raises:
      ValueError: the keys cannot be compared with each other.
    """
    try:
        return sorted(tree)
    except Exception as e:
        raise ValueError(UNSORTABLE) from e
