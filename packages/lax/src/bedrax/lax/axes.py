"""Inserted, removed and moved axes: of tuples with one entry per axis, and of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import shaping

# ---- axes as numbers


def shift(axes: Sequence[int], new: int | None) -> tuple[int, ...]:
    """The numbers of `axes` after an axis is inserted at `new`; unchanged for None."""
    return tuple(axes) if new is None else tuple([a + (a >= new) for a in axes])


def insert(values: Sequence[Any], at: int, value: int | np.generic | tuple[int, ...] | None) -> tuple[Any, ...]:
    """A tuple with one entry per axis, with the entry of a new axis inserted."""
    return (*values[:at], value, *values[at:])


def after_removal(axis: int, removed: Sequence[int]) -> int:
    """The number of `axis` after the axes `removed` are dropped."""
    return axis - sum(a < axis for a in removed)


# ---- axes of arrays


def rank_of(x: Any) -> int:
    """Number of axes of a value."""
    return len(aval_of(x).shape)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """`x` with one axis moved; negative axes count from the end."""
    rank = rank_of(x)
    source, destination = source % rank, destination % rank
    if source == destination:
        return x
    order = [i for i in range(rank) if i != source]
    return shaping.transpose(x, insert(order, destination, source))


def broadcast_axis(x: ArrayLike, size: int, position: int) -> Array:
    """`x` repeated along a new axis of `size` at `position`."""
    shape = aval_of(x).shape
    position %= len(shape) + 1
    return shaping.broadcast_in_dim(x, insert(shape, position, size), shift(range(len(shape)), position))


def merge_axes(x: ArrayLike, first: int) -> Array:
    """`x` with the axes `first` and ``first + 1`` merged into one."""
    shape = aval_of(x).shape
    return shaping.reshape(x, (*shape[:first], shape[first] * shape[first + 1], *shape[first + 2 :]))


def cut_axis(x: ArrayLike, axis: int, slow: int | None, fast: int | None = None) -> Array:
    """`x` with `axis` as two, of the sizes `slow` and `fast` (either may be None: the rest)."""
    shape = aval_of(x).shape
    if fast is None:
        fast = shape[axis] // slow
    elif slow is None:
        slow = shape[axis] // fast
    return shaping.reshape(x, (*shape[:axis], slow, fast, *shape[axis + 1 :]))
