"""Batching of indexing.

A mapped axis of the operand alone becomes one more dimension of the window. A mapped axis of the indices
alone becomes one more list of windows. A mapped axis of both becomes a pair of batching dimensions. No axis
of the operand moves.
"""

from __future__ import annotations

import numpy as np

from bedrax.batching.tables import batch_rules, to_axis
from bedrax.core import dims as core_dims
from bedrax.core.avals import aval_of
from bedrax.lax import filling
from bedrax.lax.axes import broadcast_axis, insert, move_axis, rank_of, shift
from bedrax.lax.primitives import indexing as p
from bedrax.lax.primitives import shaping


def _place(group: list, i: int, rank: int) -> int:
    """The position of a new dimension that becomes the i-th of `group`, dimensions of an array of `rank`."""
    if i < len(group):
        return group[i]
    return group[-1] + 1 if group else rank


def _batch_numbers(numbers: p.GatherDimensionNumbers, rank: int, od: int | None, xd: int | None):
    """A gather's dimension numbers with a mapped axis at `od` of the operand and `xd` of the indices.

    Args:
      rank: of the result (or of the updates, for a scatter) without the axis.

    Returns:
      The dimension numbers, and the position of the axis in the result.
    """
    offset, collapsed, index_map, operand_batch, indices_batch = numbers
    if od is not None:
        window = [
            d for d in range(len(offset) + len(collapsed) + len(operand_batch)) if d not in {*collapsed, *operand_batch}
        ]
        collapsed, index_map, operand_batch = (shift(ds, od) for ds in (collapsed, index_map, operand_batch))
    if xd is None:
        out = _place(list(offset), sum(d < od for d in window), rank)
        offset = tuple(sorted((*shift(offset, out), out)))
    else:
        indices_batch = shift(indices_batch, xd)
        listed = [d for d in range(rank) if d not in offset]
        out = _place(listed, xd, rank) if listed else 0
        offset = shift(offset, out)
        if od is not None:
            pairs = sorted([*zip(operand_batch, indices_batch, strict=True), (od, xd)])
            operand_batch, indices_batch = (tuple(ds) for ds in zip(*pairs, strict=True))
    return p.GatherDimensionNumbers(offset, collapsed, index_map, operand_batch, indices_batch), out


def _indices_axis(indices, xd):
    """Indices whose mapped axis is not the last, which holds the index vectors."""
    if xd is not None and xd == rank_of(indices) - 1:
        return move_axis(indices, xd, 0), 0
    return indices, xd


def _of_batch(axis) -> int:
    """The slice size along a batch axis: one example, if there is one."""
    return 0 if core_dims.definitely_equal(axis.size, 0) else 1


@batch_rules.rule(p.gather_p)
def _gather(axis, args, dims, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, **params):
    operand, indices = args
    od, xd = dims
    indices, xd = _indices_axis(indices, xd)
    rank = rank_of(indices) - (xd is not None) - 1 + len(dimension_numbers.offset_dims)
    numbers, out = _batch_numbers(dimension_numbers, rank, od, xd)
    if od is not None:
        size = axis.size if xd is None else _of_batch(axis)
        slice_sizes = insert(slice_sizes, od, size)
    result = p.gather_p.bind(
        operand,
        indices,
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        # The joined lists of windows are in ascending order only if each example has its own part of the operand.
        indices_are_sorted=indices_are_sorted and (xd is None or (od is not None and xd == 0)),
        unique_indices=unique_indices and (xd is None or od is not None),
        **params,
    )
    return result, out


def _scatter_rule(prim):
    def rule(axis, args, dims, *, dimension_numbers, indices_are_sorted, **params):
        operand, indices, updates = args
        od, xd, ud = dims
        indices, xd = _indices_axis(indices, xd)
        if od is None:
            operand, od = broadcast_axis(operand, axis.size, 0), 0
        rank = rank_of(updates) - (ud is not None)
        numbers, at = _batch_numbers(p.as_gather(dimension_numbers), rank, od, xd)
        out = prim.bind(
            operand,
            indices,
            to_axis(updates, ud, axis.size, at),
            dimension_numbers=p.as_scatter(numbers),
            indices_are_sorted=indices_are_sorted and (xd is None or xd == 0),
            **params,
        )
        return out, od

    batch_rules.add(prim, rule)


for _prim in p.scatter_primitives:
    _scatter_rule(_prim)


def _index_vectors(axis, starts, dims, keep):
    """Start indices, some of them mapped, as an array ``(axis, number of indices)``; only those in `keep`."""
    columns = []
    for i in keep:
        column = starts[i] if dims[i] is not None else shaping.broadcast_in_dim(starts[i], (axis.size,), ())
        columns.append(shaping.expand_dims(column, (1,)))
    if not columns:
        return filling.full((axis.size, 0), 0, np.int32)
    return columns[0] if len(columns) == 1 else shaping.concatenate(columns, 1)


def _zero_start(starts):
    """A start index of 0, of the dtype of the others."""
    return aval_of(starts[0]).dtype.type(0) if starts else np.int32(0)


@batch_rules.rule(p.dynamic_slice_p)
def _dynamic_slice(axis, args, dims, *, slice_sizes):
    (operand, *starts), (od, *sds) = args, dims
    if all(d is None for d in sds):
        starts = insert(starts, od, _zero_start(starts))
        return p.dynamic_slice_p.bind(operand, *starts, slice_sizes=insert(slice_sizes, od, axis.size)), od
    example = [n for d, n in enumerate(aval_of(operand).shape) if d != od]
    keep = [i for i, (n, s) in enumerate(zip(example, slice_sizes, strict=True)) if n is not s and n != s]
    numbers = p.GatherDimensionNumbers(tuple(range(len(slice_sizes))), (), tuple(keep))
    numbers, out = _batch_numbers(numbers, len(slice_sizes), od, 0)
    if od is not None:
        slice_sizes = insert(slice_sizes, od, _of_batch(axis))
    result = p.gather_p.bind(
        operand,
        _index_vectors(axis, starts, sds, keep),
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        indices_are_sorted=od is not None,
        unique_indices=od is not None,
        mode=p.GatherScatterMode.CLIP,
        fill_value=None,
    )
    return result, out


@batch_rules.rule(p.dynamic_update_slice_p)
def _dynamic_update_slice(axis, args, dims):
    (operand, update, *starts), (od, ud, *sds) = args, dims
    if od is None:
        operand, od = broadcast_axis(operand, axis.size, 0), 0
    if all(d is None for d in sds):
        starts = insert(starts, od, _zero_start(starts))
        return p.dynamic_update_slice_p.bind(operand, to_axis(update, ud, axis.size, od), *starts), od
    shape = aval_of(update).shape
    sizes = [n for d, n in enumerate(shape) if d != ud]
    example = [n for d, n in enumerate(aval_of(operand).shape) if d != od]
    keep = [i for i, (n, s) in enumerate(zip(example, sizes, strict=True)) if n is not s and n != s]
    numbers = p.GatherDimensionNumbers(tuple(range(len(sizes))), (), tuple(keep))
    numbers, at = _batch_numbers(numbers, len(sizes), od, 0)
    out = p.scatter_p.bind(
        operand,
        _index_vectors(axis, starts, sds, keep),
        to_axis(update, ud, axis.size, at),
        dimension_numbers=p.ScatterDimensionNumbers(*numbers),
        indices_are_sorted=True,
        unique_indices=True,
        mode=p.GatherScatterMode.CLIP,
        update_jaxpr=None,
        update_consts=(),
    )
    return out, od
