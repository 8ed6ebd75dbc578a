"""Batching of contractions: a mapped axis becomes a batch dimension, or a free one if only one side has it."""

from __future__ import annotations

import functools

from bedrax.batching.tables import batch_rules, to_front
from bedrax.core.avals import aval_of
from bedrax.lax.axes import rank_of, shift
from bedrax.lax.primitives import contractions as p
from bedrax.lax.primitives import shaping


@functools.lru_cache(1024)
def _batched_dimensions(dimension_numbers, ld, rd, lhs_ndim: int, rhs_ndim: int):
    """The dimension numbers of the mapped product, and the mapped axis of its result."""
    (lc, rc), (lb, rb) = dimension_numbers
    lc, rc, lb, rb = shift(lc, ld), shift(rc, rd), shift(lb, ld), shift(rb, rd)
    if ld is not None and rd is not None:
        return ((lc, rc), ((ld, *lb), (rd, *rb))), 0
    lhs_free = p.free_dims(lhs_ndim, lc, lb)
    if ld is not None:
        out = len(lb) + lhs_free.index(ld)
    else:
        out = len(lb) + len(lhs_free) + p.free_dims(rhs_ndim, rc, rb).index(rd)
    return ((lc, rc), (lb, rb)), out


@batch_rules.rule(p.dot_general_p)
def _dot_general(axis, args, dims, *, dimension_numbers, **params):
    (x, y), (ld, rd) = args, dims
    numbers, out = _batched_dimensions(dimension_numbers, ld, rd, rank_of(x), rank_of(y))
    return p.dot_general_p.bind(x, y, dimension_numbers=numbers, **params), out


@batch_rules.rule(p.scaled_dot_p)
def _scaled_dot(axis, args, dims, *, dimension_numbers, **params):
    x, y, x_scale, y_scale = args
    ld, rd, xd, yd = dims
    if ld != xd:  # an operand and its scale are laid out alike
        x, x_scale, ld = to_front(x, ld, axis.size), to_front(x_scale, xd, axis.size), 0
    if rd != yd:
        y, y_scale, rd = to_front(y, rd, axis.size), to_front(y_scale, yd, axis.size), 0
    numbers, out = _batched_dimensions(dimension_numbers, ld, rd, rank_of(x), rank_of(y))
    return p.scaled_dot_p.bind(x, y, x_scale, y_scale, dimension_numbers=numbers, **params), out


@batch_rules.rule(p.ragged_dot_general_p)
def _ragged_dot(axis, args, dims, *, ragged_dot_dimension_numbers, **params):
    x, y, sizes, *offset = args
    numbers = ragged_dot_dimension_numbers
    if offset and dims[3] is not None:
        raise NotImplementedError("vmap of ragged_dot_general over its group_offset is not supported; pass one offset")
    kind, prefix = p.ragged_kind(rank_of(x) - (dims[0] is not None), numbers)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    if kind == "batch":  # The values do not depend on the groups.
        both = (
            _batched_dimensions(numbers.dot_dimension_numbers, dims[0], dims[1], rank_of(x), rank_of(y))
            if dims[0] is not None or dims[1] is not None
            else (numbers.dot_dimension_numbers, None)
        )
        return p.dot_general_p.bind(x, y, dimension_numbers=both[0], **params), both[1]
    x, y = to_front(x, dims[0], axis.size), to_front(y, dims[1], axis.size)
    if dims[2] is not None or rank_of(sizes) > 1:
        sizes = to_front(sizes, dims[2], axis.size)
        if rank_of(sizes) == 2:  # one list of sizes per example, which must have the layout of the full form
            shape = aval_of(x).shape
            groups = aval_of(sizes).shape[-1]
            full = (axis.size, *[shape[d + 1] for d in prefix], groups)
            sizes = shaping.broadcast_in_dim(sizes, full, (0, len(full) - 1))
    up = lambda ds: shift(ds, 0)
    new = p.RaggedDotDimensionNumbers(
        ((up(lc), up(rc)), ((0, *up(lb)), (0, *up(rb)))),
        up(numbers.lhs_ragged_dimensions),
        up(numbers.rhs_group_dimensions),
    )
    out = p.ragged_dot_general_p.bind(x, y, sizes, *offset, ragged_dot_dimension_numbers=new, **params)
    return out, 1 if kind == "contracting" else 0
