"""The order of a dict's children: its sorted keys."""

from __future__ import annotations

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
