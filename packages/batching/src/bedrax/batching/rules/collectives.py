"""Batching of collectives.

Where a collective names the mapped axis (`axis_rules`), the axis is at hand as an array axis
and the collective becomes an ordinary operation on it. Elsewhere (`batch_rules`) it acts on
each element of the batch.
"""

from __future__ import annotations

import numpy as np

from bedrax import lax
from bedrax.batching.tables import batch_rules, to_front
from bedrax.batching.trace import axis_rules
from bedrax.core.avals import aval_of
from bedrax.lax.axes import cut_axis, merge_axes, move_axis
from bedrax.lax.primitives.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)


def _split_groups(x, groups):
    """Axis 0 of `x` as (group, member), and the order that undoes it."""
    order = np.asarray(groups).reshape(-1)
    picked = lax.concatenate([lax.slice_in_dim(x, int(i), int(i) + 1) for i in order], 0)
    return lax.reshape(picked, (len(groups), len(groups[0]), *aval_of(x).shape[1:])), np.argsort(order)


def _reduction(prim, reduce):
    @axis_rules.rule(prim)
    def _(axis, args, dims, *, axes, axis_index_groups):
        (x,), (d,) = args, dims
        x = to_front(x, d, axis.size)
        others = tuple(n for n in axes if n != axis.name)
        if axis_index_groups is not None:
            if others:
                raise NotImplementedError(f"'{prim}' with axis_index_groups over several axes {axes}")
            grouped, undo = _split_groups(x, axis_index_groups)
            total = reduce(grouped, (1,))
            spread = lax.broadcast_in_dim(
                total, (*aval_of(grouped).shape[:2], *aval_of(x).shape[1:]), (0, *range(2, len(aval_of(grouped).shape)))
            )
            flat = lax.reshape(spread, aval_of(x).shape)
            return lax.concatenate([lax.slice_in_dim(flat, int(i), int(i) + 1) for i in undo], 0), 0
        out = reduce(x, (0,))
        return (prim.bind(out, axes=others, axis_index_groups=None) if others else out), None


_reduction(psum_p, lax.reduce_sum)
_reduction(pmax_p, lax.reduce_max)
_reduction(pmin_p, lax.reduce_min)


@axis_rules.rule(ppermute_p)
def _ppermute(axis, args, dims, *, axis_name, perm):
    x = to_front(args[0], dims[0], axis.size)
    source = {d: s for s, d in perm}
    rows = [
        lax.slice_in_dim(x, source[i], source[i] + 1)
        if i in source
        else lax.full((1, *aval_of(x).shape[1:]), 0, aval_of(x).dtype)
        for i in range(axis.size)
    ]
    return lax.concatenate(rows, 0), 0


@axis_rules.rule(all_gather_p)
def _all_gather(axis, args, dims, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    _only(axis_name, axis, axis_index_groups, "all_gather")
    x = to_front(args[0], dims[0], axis.size)
    x = move_axis(x, 0, all_gather_dimension)
    return (merge_axes(x, all_gather_dimension) if tiled else x), None


def _only(axis_name, axis, groups, what):
    if axis_name not in (axis.name, (axis.name,)) or groups is not None:
        raise NotImplementedError(
            f"{what} over {axis_name} with axis_index_groups={groups} under vmap over '{axis.name}'"
        )


@axis_rules.rule(reduce_scatter_p)
def _reduce_scatter(axis, args, dims, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
    _only(axis_name, axis, axis_index_groups, "psum_scatter")
    x = lax.reduce_sum(to_front(args[0], dims[0], axis.size), (0,))
    return (cut_axis(x, scatter_dimension, axis_size) if tiled else x), scatter_dimension


@axis_rules.rule(all_to_all_p)
def _all_to_all(axis, args, dims, *, split_axis, concat_axis, axis_name, axis_index_groups, tiled):
    _only(axis_name, axis, axis_index_groups, "all_to_all")
    x = to_front(args[0], dims[0], axis.size)
    if tiled:
        x = cut_axis(x, split_axis + 1, axis.size)
    x = move_axis(x, split_axis + 1, 0)  # (new named axis, old named axis, rest)
    x = move_axis(x, 1, concat_axis + 1)
    return (merge_axes(x, concat_axis + 1) if tiled else x), 0


@axis_rules.rule(axis_index_p)
def _axis_index(axis, args, dims, *, axis_name):
    return lax.iota(np.dtype(np.int32), axis.size), 0


def _each(prim):
    def rule(axis, args, dims, **params):
        return prim.bind(*args, **params), dims[0]

    return rule


for _prim in (psum_p, pmax_p, pmin_p, ppermute_p):
    batch_rules.add(_prim, _each(_prim), "elementwise")


@batch_rules.rule(all_gather_p)
def _all_gather_each(axis, args, dims, *, all_gather_dimension, tiled, **params):
    (d,) = dims
    at = all_gather_dimension + (all_gather_dimension >= d if tiled else all_gather_dimension > d)
    out = all_gather_p.bind(args[0], all_gather_dimension=at, tiled=tiled, **params)
    return out, d if tiled else d + (at <= d)


@batch_rules.rule(reduce_scatter_p)
def _reduce_scatter_each(axis, args, dims, *, scatter_dimension, tiled, **params):
    (d,) = dims
    at = scatter_dimension + (scatter_dimension >= d)
    out = reduce_scatter_p.bind(args[0], scatter_dimension=at, tiled=tiled, **params)
    return out, d if tiled else d - (at < d)


@batch_rules.rule(all_to_all_p)
def _all_to_all_each(axis, args, dims, *, split_axis, concat_axis, **params):
    x = move_axis(args[0], dims[0], 0)
    return all_to_all_p.bind(x, split_axis=split_axis + 1, concat_axis=concat_axis + 1, **params), 0


batch_rules.absent(axis_index_p, why="it has no operands, so nothing of it is mapped but by the axis that it names")
