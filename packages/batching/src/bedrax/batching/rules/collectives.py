"""Batching of collectives.

Where a collective names the mapped axis (`axis_rules`), the axis is an array axis
and the collective becomes an ordinary operation on it. Elsewhere (`batch_rules`) it acts on
each element of the batch.

If a collective names several axes, only the mapped one is an array axis. Reductions and gathers continue along the
others. The other collectives gather all values and select their part. Groups are handled as axes.
"""

from __future__ import annotations

import math

import numpy as np

from bedrax import lax
from bedrax.batching.tables import AxisData, batch_rules, to_front
from bedrax.batching.trace import axis_rules, batch_flat
from bedrax.core.avals import aval_of
from bedrax.core.tracing import axis_size, pvary_p
from bedrax.lax.axes import cut_axis, merge_axes, move_axis
from bedrax.lax.primitives import collectives as p
from bedrax.lax.primitives.collectives import names_of
from bedrax.lax.tables import decompositions


def _rows(x, order):
    """Permutes the rows of `x`."""
    return lax.concatenate([lax.slice_in_dim(x, int(i), int(i) + 1) for i in order], 0)


def _in_groups(rule, axis, args, dims, groups, params):
    """A collective within groups: for each of these, the same along an axis of its length."""
    xs = [to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
    by_length: dict[int, list] = {}
    for group in groups:
        by_length.setdefault(len(group), []).append(group)
    parts = [_in_equal_groups(rule, axis, xs, np.array(same), params) for same in by_length.values()]
    order = [i for same in by_length.values() for group in same for i in group]
    return _rows(parts[0] if len(parts) == 1 else lax.concatenate(parts, 0), np.argsort(order)), 0


def _in_equal_groups(rule, axis, xs, groups, params):
    """The same for groups of one length: the rows of the result are in the order of the groups."""
    count, size = groups.shape
    xs = [_rows(x, groups.reshape(-1)) for x in xs]
    grouped = [lax.reshape(x, (count, size, *aval_of(x).shape[1:])) for x in xs]

    def one_group(*xs):
        out, d = rule(axis._replace(size=size), xs, [0] * len(xs), **params)
        return [to_front(out, d, size)]

    (out,), (d,) = batch_flat(one_group, AxisData(None, count), grouped, [0] * len(grouped))
    return merge_axes(to_front(out, d, count), 0)


_ALL = object()  # the name of the joint axis of several axes


def _together(rule, axis, args, dims, names, params):
    """A collective over several axes: gathers the values of all indices, and selects the result of each."""
    size = math.prod(axis_size(n) if n != axis.name else axis.size for n in names)
    gather = dict(all_gather_dimension=0, axis_name=names, axis_index_groups=None, axis_size=size, tiled=False)

    def one(*xs):
        every = [p.all_gather_p.bind(x, **gather) for x in xs]
        out, d = rule(AxisData(_ALL, size), every, [0] * len(every), **params)
        out = to_front(out, d, size)
        return [lax.dynamic_index_in_dim(out, p.axis_index(names), 0, keepdims=False)]

    (out,), (d,) = batch_flat(one, axis, args, dims)
    return out, d


def _along_axis(*prims):
    """Decorator: turns the rule along one axis without groups into the rule for several axes and for groups.

    It is ``rule(axis, args, dims, **params)`` without the params of axes and groups.
    """

    def register(rule):
        for prim in prims:

            @axis_rules.rule(prim)
            def whole(axis, args, dims, *, axis_name, axis_index_groups=None, **params):
                names, along = names_of(axis_name), rule
                if axis_index_groups is not None:
                    along = lambda axis, args, dims, **params: _in_groups(
                        rule, axis, args, dims, axis_index_groups, params
                    )
                if len(names) == 1:
                    return along(axis, args, dims, **params)
                return _together(along, axis, args, dims, names, params)

        return rule

    return register


def _reduction(reduce, *prims):
    for prim in prims:

        def along(axis, args, dims):
            return reduce(to_front(args[0], dims[0], axis.size), (0,)), None

        @axis_rules.rule(prim)
        def _(axis, args, dims, *, axes, axis_index_groups, prim=prim, along=along):
            others = tuple(n for n in axes if n != axis.name)
            if axis_index_groups is None:
                out, d = along(axis, args, dims)
                return (prim.bind(out, axes=others, axis_index_groups=None) if others else out), d
            grouped = lambda axis, args, dims: _in_groups(along, axis, args, dims, axis_index_groups, {})
            return _together(grouped, axis, args, dims, axes, {}) if others else grouped(axis, args, dims)


_reduction(lax.reduce_sum, p.psum_p, p.psum_invariant_p)
_reduction(lax.reduce_max, p.pmax_p)
_reduction(lax.reduce_min, p.pmin_p)


@axis_rules.rule(pvary_p)
def _pvary(axis, args, dims, *, axes):
    others = axes - {axis.name}
    return (pvary_p.bind(args[0], axes=others) if others else args[0]), dims[0]


@axis_rules.rule(p.cast_p)
def _cast(axis, args, dims, *, axes, **params):
    """Cast over the other axes only: the mapped axis is an axis of the array, and not a manual axis of the type."""
    others = axes - {axis.name}
    return (p.cast_p.bind(args[0], axes=others, **params) if others else args[0]), dims[0]


@_along_axis(p.ppermute_p)
def _ppermute(axis, args, dims, *, perm):
    x = to_front(args[0], dims[0], axis.size)
    source = {d: s for s, d in perm}
    rows = [
        lax.slice_in_dim(x, source[i], source[i] + 1)
        if i in source
        else lax.full((1, *aval_of(x).shape[1:]), 0, aval_of(x).dtype)
        for i in range(axis.size)
    ]
    return lax.concatenate(rows, 0), 0


def _gathered(axis, args, dims, *, all_gather_dimension, axis_size, tiled):
    x = move_axis(to_front(args[0], dims[0], axis.size), 0, all_gather_dimension)
    return (merge_axes(x, all_gather_dimension) if tiled else x), None


for _prim in (p.all_gather_p, p.all_gather_invariant_p):

    @axis_rules.rule(_prim)
    def _all_gather(axis, args, dims, *, axis_name, axis_index_groups, prim=_prim, **params):
        names = names_of(axis_name)
        along = _gathered
        if axis_index_groups is not None:
            along = lambda axis, args, dims, **params: _in_groups(
                _gathered, axis, args, dims, axis_index_groups, params
            )
            if len(names) > 1:
                return _together(along, axis, args, dims, names, params)
        if len(names) == 1:
            return along(axis, args, dims, **params)
        # The mapped axis is an array axis. The others are gathered in front of it; then all are put in order.
        others = tuple(n for n in names if n != axis.name)
        count, place = params["axis_size"] // axis.size, names.index(axis.name)
        x = prim.bind(
            to_front(args[0], dims[0], axis.size),
            axis_name=others,
            axis_index_groups=None,
            axis_size=count,
            all_gather_dimension=0,
            tiled=False,
        )
        shape = aval_of(x).shape
        x = lax.reshape(x, (*(axis_size(n) for n in others), *shape[1:]))
        x = move_axis(x, len(others), place)
        x = lax.reshape(x, (params["axis_size"], *shape[2:]))
        at = params["all_gather_dimension"]
        x = move_axis(x, 0, at)
        return (merge_axes(x, at) if params["tiled"] else x), None


@_along_axis(p.reduce_scatter_p)
def _reduce_scatter(axis, args, dims, *, scatter_dimension, axis_size, tiled):
    x = lax.reduce_sum(to_front(args[0], dims[0], axis.size), (0,))
    return (cut_axis(x, scatter_dimension, axis.size) if tiled else x), scatter_dimension


@_along_axis(p.all_to_all_p)
def _all_to_all(axis, args, dims, *, split_axis, concat_axis, tiled):
    x = to_front(args[0], dims[0], axis.size)
    if tiled:
        x = cut_axis(x, split_axis + 1, axis.size)
    x = move_axis(x, split_axis + 1, 0)  # (new named axis, old named axis, rest)
    x = move_axis(x, 1, concat_axis + 1)
    return (merge_axes(x, concat_axis + 1) if tiled else x), 0


@axis_rules.rule(p.ragged_all_to_all_p)
def _ragged(axis, args, dims, **params):
    (out,), (d,) = batch_flat(lambda *xs: [decompositions[p.ragged_all_to_all_p](*xs, **params)], axis, args, dims)
    return out, d


axis_rules.add(p.axis_index_p, lambda axis, args, dims, *, axis_name: (lax.iota(np.dtype(np.int32), axis.size), 0))


def _each(prim):
    def rule(axis, args, dims, **params):
        return prim.bind(*args, **params), dims[0]

    return rule


for _prim in (p.psum_p, p.psum_invariant_p, p.pmax_p, p.pmin_p, p.ppermute_p, pvary_p):
    batch_rules.add(_prim, _each(_prim), "elementwise")


@batch_rules.rule(p.cast_p)
def _cast_each(axis, args, dims, *, to, src, **params):
    (d,) = dims
    to, src = (place and place.with_dimension(d, ()) for place in (to, src))
    return p.cast_p.bind(*args, to=to, src=src, **params), d


for _prim in (p.all_gather_p, p.all_gather_invariant_p):

    @batch_rules.rule(_prim)
    def _all_gather_each(axis, args, dims, *, all_gather_dimension, tiled, prim=_prim, **params):
        (d,) = dims
        at = all_gather_dimension + (all_gather_dimension >= d if tiled else all_gather_dimension > d)
        out = prim.bind(args[0], all_gather_dimension=at, tiled=tiled, **params)
        return out, d if tiled else d + (at <= d)


@batch_rules.rule(p.reduce_scatter_p)
def _reduce_scatter_each(axis, args, dims, *, scatter_dimension, tiled, **params):
    (d,) = dims
    at = scatter_dimension + (scatter_dimension >= d)
    out = p.reduce_scatter_p.bind(args[0], scatter_dimension=at, tiled=tiled, **params)
    return out, d if tiled else d - (at < d)


@batch_rules.rule(p.all_to_all_p)
def _all_to_all_each(axis, args, dims, *, split_axis, concat_axis, **params):
    x = move_axis(args[0], dims[0], 0)
    return p.all_to_all_p.bind(x, split_axis=split_axis + 1, concat_axis=concat_axis + 1, **params), 0


@batch_rules.rule(p.ragged_all_to_all_p)
def _ragged_each(axis, args, dims, **params):
    xs = [to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]

    def pick(i):
        return [lax.index_in_dim(x, i, 0, keepdims=False) for x in xs]

    return lax.concatenate(
        [lax.expand_dims(p.ragged_all_to_all_p.bind(*pick(i), **params), (0,)) for i in range(axis.size)], 0
    ), 0


batch_rules.absent(p.axis_index_p, why="it has no operands, so it is mapped only by the axis that it names")
