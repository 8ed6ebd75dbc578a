"""Values in nested groups, in which libraries of upstream 0.11 and later describe the operands and results of `scan`.

Needed by Quax, which splits the groups of a loop and binds a loop with its own groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

Nesting: TypeAlias = tuple[Any, ...] | None  # None: a value; a tuple: a group


class FlatTree:
    """A flat list of values, and the nesting of the groups that they are in.

    Args:
      nesting: None for a single value, or a tuple of nestings: one for each member of a group.
      vals: the values of all groups, in order.

    Raises:
      ValueError: if there are more or fewer values than places in `nesting`.
    """

    __slots__ = ("nesting", "vals")

    def __init__(self, nesting: Nesting, vals: Sequence[Any]) -> None:
        if len(vals) != _size(nesting):
            raise ValueError(f"groups of {_size(nesting)} values were given {len(vals)}: {nesting}")
        self.nesting: Nesting = nesting
        self.vals: tuple[Any, ...] = tuple(vals)

    def update(self, new_vals: Sequence[Any]) -> FlatTree:
        """The same groups with other values."""
        return FlatTree(self.nesting, tuple(new_vals))

    def map(self, f: Callable[[Any], Any]) -> FlatTree:
        """The same groups with ``f(value)`` for each value."""
        return self.update([f(x) for x in self.vals])

    def unpack(self) -> tuple[FlatTree, ...]:
        """The members of the outermost group, each a `FlatTree`.

        Raises:
          TypeError: if this is a single value.
        """
        if self.nesting is None:
            raise TypeError(f"unpack takes a group, got a single value: {self!r}")
        members, at = [], 0
        for nesting in self.nesting:
            size = _size(nesting)
            members.append(FlatTree(nesting, self.vals[at : at + size]))
            at += size
        return tuple(members)

    def unflatten(self) -> Any:
        """The values as nested tuples; of a single value, the value."""
        return self.vals[0] if self.nesting is None else tuple(member.unflatten() for member in self.unpack())

    def __len__(self) -> int:
        return len(self.vals)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.vals)

    def __eq__(self, other: object) -> bool:
        return type(other) is FlatTree and (self.nesting, self.vals) == (other.nesting, other.vals)

    def __hash__(self) -> int:
        return hash((self.nesting, self.vals))

    def __repr__(self) -> str:
        return repr(self.unflatten())


def _size(nesting: Nesting) -> int:
    return 1 if nesting is None else sum(map(_size, nesting))


def nones(n: int) -> FlatTree:
    """A group of `n` values None, for `n` operands whose number alone is known."""
    return FlatTree((None,) * n, (None,) * n)


def pack(tree: Any) -> FlatTree:
    """One `FlatTree` of a tuple of them, or of nested tuples.

    Raises:
      TypeError: if something else stands among them.
    """
    if type(tree) is FlatTree:
        return tree
    if not isinstance(tree, tuple):
        raise TypeError(f"pack takes a FlatTree or nested tuples of them, got {type(tree).__name__}")
    members = [pack(member) for member in tree]
    return FlatTree(tuple(m.nesting for m in members), tuple(x for m in members for x in m.vals))
