"""Explanations why one tree is not a prefix of another, with the position."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from .paths import KeyPath, flatten_one_level_with_keys, is_tree_node, keystr


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[Callable[[str], ValueError]]:
    """All positions at which `prefix_tree` is not a tree prefix of `full_tree`, left to right.

    Returns:
      One function per position; called with the name of the prefix tree (such as
      `"vmap in_axes"`) it returns the `ValueError` to raise. Empty if it is a prefix.
    """
    predicate = is_leaf if is_leaf is None or is_leaf_takes_path else lambda _, x: is_leaf(x)
    return list(_mismatches(prefix_tree, full_tree, predicate))


def _error(kind: str, path: KeyPath, details: Callable[[str], str]) -> Callable[[str], ValueError]:
    def make(name: str) -> ValueError:
        where = f"pytree structure error: {kind} at key path\n    {name}{keystr(path)}\n"
        return ValueError(where + details(name))

    return make


def _mismatches(prefix_tree: Any, full_tree: Any, is_leaf) -> Iterator[Callable[[str], ValueError]]:
    agenda: list[tuple[KeyPath, Any, Any]] = [((), prefix_tree, full_tree)]
    while agenda:
        path, prefix, full = agenda.pop()
        if not is_tree_node(type(prefix)) or (is_leaf is not None and is_leaf(path, prefix)):
            continue
        t, u = type(prefix), type(full)
        if t is not u:
            yield _type_error(path, t, u)
            continue
        prefix_pairs, prefix_data = flatten_one_level_with_keys(prefix)
        full_pairs, full_data = flatten_one_level_with_keys(full)
        prefix_pairs, full_pairs = list(prefix_pairs), list(full_pairs)
        if len(prefix_pairs) != len(full_pairs):
            yield _length_error(path, t, prefix_pairs, full_pairs)
        elif prefix_data is not full_data and prefix_data != full_data:
            yield _metadata_error(path, t, prefix_data, full_data)
        else:
            agenda += [((*path, key), p, f) for (key, p), (_, f) in zip(prefix_pairs, full_pairs)][::-1]


def _type_error(path, t, u):
    return _error(
        "different types",
        path,
        lambda name: f"There {name} has a subtree of type\n    {t}\nbut the full pytree has one of type\n    {u}.",
    )


def _length_error(path, t, prefix_pairs, full_pairs):
    n, m = len(prefix_pairs), len(full_pairs)
    if t in (tuple, list):
        return _error(
            f"different lengths of {t.__name__}",
            path,
            lambda name: f"There {name} has a {t.__name__} of length {n}, but the full pytree has one of length {m}.",
        )
    ours = [keystr((k,), simple=True) for k, _ in prefix_pairs]
    theirs = [keystr((k,), simple=True) for k, _ in full_pairs]
    only = " ".join(k for k in dict.fromkeys(ours + theirs) if (k in ours) != (k in theirs))
    return _error(
        "different numbers of pytree children",
        path,
        lambda name: (
            f"There {name} has a subtree of type\n    {t}\nwith {n} child keys\n    {' '.join(ours)}\n"
            f"but the full pytree has one with {m} child keys\n    {' '.join(theirs)}\n"
            f"Keys that only one of them has:\n    {only}"
        ),
    )


def _metadata_error(path, t, prefix_data, full_data):
    diff = textwrap.indent("\n".join(difflib.ndiff(str(prefix_data).splitlines(), str(full_data).splitlines())), "    ")
    return _error(
        "different pytree metadata",
        path,
        lambda name: (
            f"There {name} has a subtree of type\n    {t}\nwith metadata\n    {prefix_data}\n"
            f"but the full pytree has one with metadata\n    {full_data}\nThe difference:\n{diff}"
        ),
    )
