"""NumPy evaluation of indexing: one advanced-indexing expression for a gather or a scatter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax.lax.primitives import indexing as p
from bedrax.numpy_backend.program_source import evaluate
from bedrax.numpy_backend.tables import Exactness, exact_rules, numpy_rules


def _starts(operand, indices, numbers, sizes, clip: bool):
    """Return the start positions of the windows.

    Returns:
      For each dimension of the operand, an array over the windows, or 0; and a mask of the windows inside bounds.
    """
    batch = indices.shape[:-1]
    starts: list[Any] = [0] * operand.ndim
    inside = np.ones(batch, np.bool_)
    # Indices beyond int64 are out of bounds anyhow.
    indices = np.minimum(indices, np.iinfo(np.int64).max) if indices.dtype == np.uint64 else indices
    for k, d in enumerate(numbers.start_index_map):
        start, last = indices[..., k].astype(np.int64), operand.shape[d] - sizes[d]
        if not clip:
            inside &= (start >= 0) & (start <= last)
        starts[d] = np.clip(start, 0, last)
    for d, i in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        starts[d] = np.arange(batch[i]).reshape([batch[i] if j == i else 1 for j in range(len(batch))])
    return starts, inside


def _split_dims(operand, numbers, sizes) -> tuple[list[int], list[int]]:
    """Return the indexed dimensions, and those that the window spans."""
    touched = {*numbers.start_index_map, *numbers.operand_batching_dims}
    whole = [d for d in range(operand.ndim) if d not in touched and sizes[d] == operand.shape[d]]
    return [d for d in range(operand.ndim) if d not in whole], whole


def _positions(starts, sizes, batch: tuple) -> tuple:
    """Return the positions of the elements of the windows: per indexed dimension an array ``(*batch, *sizes)``."""
    shape, n = (*batch, *sizes), len(sizes)
    where = []
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        offsets = np.arange(size).reshape([-1 if j == i else 1 for j in range(n)])
        where.append(np.broadcast_to(np.reshape(start, (*np.shape(start), *[1] * n)) + offsets, shape))
    return tuple(where)


@numpy_rules.rule(p.gather_p)
def _gather(operand, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value):
    numbers, batch = dimension_numbers, indices.shape[:-1]
    fill = mode is p.GatherScatterMode.FILL_OR_DROP
    starts, inside = _starts(operand, indices, numbers, slice_sizes, clip=not fill)
    part, whole = _split_dims(operand, numbers, slice_sizes)
    source = operand.transpose(*part, *whole)
    if part:
        out = source[_positions([starts[d] for d in part], [slice_sizes[d] for d in part], batch)]
    else:
        out = np.broadcast_to(source, (*batch, *source.shape))
    # From batch, indexed, whole to batch, then the window in the operand's order.
    b = len(batch)
    position = {d: b + i for i, d in enumerate([*part, *whole])}
    out = out.transpose(*range(b), *[position[d] for d in range(operand.ndim)])
    lacking = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    out = out.reshape((*batch, *[s for d, s in enumerate(slice_sizes) if d not in lacking]))
    if fill and not inside.all():
        inside = inside.reshape(inside.shape + (1,) * (out.ndim - b))
        out = np.where(inside, out, np.asarray(fill_value).astype(operand.dtype))
    rank = out.ndim
    batch_at, offset_at = iter(range(b)), iter(range(b, rank))
    return out.transpose([next(offset_at) if d in numbers.offset_dims else next(batch_at) for d in range(rank)])


def _scatter_rule(prim, combine):
    def rule(
        operand,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
        update_jaxpr=None,
        update_consts=(),
    ):
        numbers, batch = p.as_gather(dimension_numbers), indices.shape[:-1]
        sizes = p.window_sizes(operand.ndim, updates.shape, dimension_numbers)
        starts, inside = _starts(operand, indices, numbers, sizes, clip=mode is p.GatherScatterMode.CLIP)
        part, whole = _split_dims(operand, numbers, sizes)
        keep = np.flatnonzero(inside.reshape(-1))
        # Updates with the windows' positions in front, then the window in the operand's order.
        window = dimension_numbers.update_window_dims
        rest = [d for d in range(updates.ndim) if d not in window]
        out = operand.copy()
        if not (updates.size and len(keep)):
            return out
        values = updates.transpose(*rest, *window).reshape(-1, *sizes)[keep]
        values = values.transpose(0, *[d + 1 for d in (*part, *whole)])
        view = out.transpose(*part, *whole)
        if part:
            kept = [np.broadcast_to(starts[d], batch).reshape(-1)[keep] for d in part]
            where = _positions(kept, [sizes[d] for d in part], keep.shape)
        else:
            view, where = view[None], (np.zeros(len(keep), np.intp),)
        if update_jaxpr is not None:
            _apply(view, where, values, update_jaxpr)
        elif combine is None:
            view[where] = values
        elif unique_indices:
            view[where] = combine(view[where], values)
        else:
            combine.at(view, where, values)
        return out

    numpy_rules.add(prim, rule)


def _apply(view, where, values, jaxpr) -> None:
    """Compute ``view[where] = jaxpr(view[where], values)``, once for each occurrence of a position."""
    flat = np.ravel_multi_index(where, view.shape[: len(where)]).reshape(-1)
    values = values.reshape(len(flat), *values.shape[where[0].ndim :])
    order = np.argsort(flat, kind="stable")
    _, first, counts = np.unique(flat[order], return_index=True, return_counts=True)
    occurrence = np.empty_like(flat)
    occurrence[order] = np.arange(len(flat)) - np.repeat(first, counts)
    for i in range(counts.max()):
        now = np.flatnonzero(occurrence == i)
        at = tuple(w.reshape(-1)[now] for w in where)
        old, new = view[at], values[now]
        results = [evaluate(jaxpr, x, y)[0] for x, y in zip(old.reshape(-1), new.reshape(-1), strict=True)]
        view[at] = np.asarray(results, view.dtype).reshape(old.shape)


for _prim, _combine in (
    (p.scatter_p, None),
    (p.scatter_add_p, np.add),
    (p.scatter_sub_p, np.subtract),
    (p.scatter_mul_p, np.multiply),
    (p.scatter_min_p, np.minimum),
    (p.scatter_max_p, np.maximum),
):
    _scatter_rule(_prim, _combine)


def _clamped(starts, shape, sizes) -> tuple:
    return tuple(
        [slice(i := min(max(int(s), 0), n - size), i + size) for s, n, size in zip(starts, shape, sizes, strict=True)]
    )


@numpy_rules.rule(p.dynamic_slice_p)
def _dynamic_slice(operand, *starts, slice_sizes):
    return operand[_clamped(starts, operand.shape, slice_sizes)]


@numpy_rules.rule(p.dynamic_update_slice_p)
def _dynamic_update_slice(operand, update, *starts):
    out = operand.copy()
    out[_clamped(starts, operand.shape, update.shape)] = update
    return out


for _prim in (p.gather_p, p.dynamic_slice_p, p.dynamic_update_slice_p):
    exact_rules.add(_prim, lambda types, **params: Exactness.BITS)


@exact_rules.rule(p.scatter_p)
def _scatter_is_exact(types, *, unique_indices, **_):
    return Exactness.BITS if unique_indices or math.prod(types[1].shape[:-1]) <= 1 else None


@exact_rules.rule(p.scatter_add_p, p.scatter_sub_p, p.scatter_mul_p, p.scatter_min_p, p.scatter_max_p)
def _scatter_of_integers_is_exact(types, **_):
    return Exactness.BITS if types[0].dtype.kind in "iu" else None
