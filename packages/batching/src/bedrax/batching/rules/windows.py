"""Batching of the window primitives: the mapped axis gets windows of one element."""

from __future__ import annotations

from bedrax.batching.rules.reductions import over_arrays
from bedrax.batching.rules.shaping import common_dim
from bedrax.batching.tables import batch_rules, to_axis
from bedrax.core.avals import aval_of
from bedrax.lax.axes import insert
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives import windows as p
from bedrax.lax.primitives.windows import Windows


def _with_unit_window(params: dict, dim: int) -> dict:
    """Window parameters with those of the mapped axis inserted."""
    unit = {"padding": (0, 0)}
    names = Windows._fields
    return {k: insert(v, dim, unit.get(k, 1)) if k in names else v for k, v in params.items()}


def _rule(prim):
    def rule(axis, args, dims, **params):
        dim = common_dim(dims)
        args = [to_axis(x, d, axis.size, dim) for x, d in zip(args, dims)]
        return prim.bind(*args, **_with_unit_window(params, dim)), dim

    batch_rules.add(prim, rule)


for _prim in (
    p.reduce_window_sum_p,
    p.reduce_window_max_p,
    p.reduce_window_min_p,
    p.select_and_scatter_add_p,
    p.select_and_gather_add_p,
):
    _rule(_prim)


@batch_rules.rule(p.reduce_window_p)
def _reduce_window(axis, args, dims, *, jaxpr, **params):
    half = len(args) // 2
    if all(d is None for d in dims[half:]):
        dim = common_dim(dims)
        operands = [to_axis(x, d, axis.size, dim) for x, d in zip(args[:half], dims)]
        params = _with_unit_window(params, dim)
        return p.reduce_window_p.bind(*operands, *args[half:], jaxpr=jaxpr, **params), [dim] * half
    # Initial values differ within the batch, and so does the padding. Fold slices.
    from bedrax.batching.api import vmap

    combine = over_arrays(jaxpr)
    windows = Windows(**params)
    fold = lambda *xs: p.fold_windows(combine, xs[:half], xs[half:], windows)
    mapped = [to_axis(x, d, axis.size, 0) for x, d in zip(args, dims)]
    return list(vmap(fold)(*mapped)), [0] * half


@batch_rules.rule(p.select_and_scatter_p)
def _select_and_scatter(axis, args, dims, **params):
    operand, source, init = args
    if dims[2] is None:
        dim = common_dim(dims)
        operand, source = (to_axis(x, d, axis.size, dim) for x, d in zip((operand, source), dims))
        return p.select_and_scatter_p.bind(operand, source, init, **_with_unit_window(params, dim)), dim
    # One initial value per element of the batch: one operation each.
    rows = [to_axis(x, d, axis.size, 0) for x, d in zip(args, dims)]
    out = [
        p.select_and_scatter_p.bind(*(shaping.index_in_dim(x, i, 0, keepdims=False) for x in rows), **params)
        for i in range(aval_of(rows[0]).shape[0])
    ]
    return shaping.stack(out, 0), 0
