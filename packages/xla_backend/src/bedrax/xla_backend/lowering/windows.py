"""The window primitives in StableHLO."""

from __future__ import annotations

import numpy as np

from bedrax.core.primitives import elementwise, reductions
from bedrax.core.primitives import windows as p
from bedrax.core.primitives.windows import Windows
from bedrax.xla_backend.lowering.reductions import accumulator, combiner_region
from bedrax.xla_backend.tables import lowering_rules

rule = lowering_rules.rule
_DIRECTION = {elementwise.ge_p: "GE", elementwise.le_p: "LE"}
_WORST = {elementwise.ge_p: reductions.reduce_max_p, elementwise.le_p: reductions.reduce_min_p}


def _reduce_window(ctx, operands, inits, result_types, region, windows: Windows):
    return ctx.emit(
        "stablehlo.reduce_window", [*operands, *inits], result_types, regions=[region],
        window_dimensions=windows.window_dimensions, window_strides=windows.window_strides,
        base_dilations=windows.base_dilation, window_dilations=windows.window_dilation,
        padding=_pads(windows.padding),
    )  # fmt: skip


def _pads(padding) -> np.ndarray:
    return np.asarray(padding, np.int64).reshape(len(padding), 2)


@rule(p.reduce_window_sum_p, p.reduce_window_max_p, p.reduce_window_min_p)
def _known(ctx, x, **params):
    whole = p.reduction_of[ctx.prim]
    dtype = ctx.avals_in[0].dtype
    wide = accumulator(whole, dtype)
    init = ctx.constant(reductions.identities[whole](wide), wide)
    out = _reduce_window(
        ctx, [ctx.convert(x, wide)], [init], ctx.tensor_type(ctx.avals_out[0].shape, wide),
        combiner_region(ctx, whole, wide), Windows(**params),
    )  # fmt: skip
    return ctx.convert(out, dtype)


@rule(p.reduce_window_p)
def _any(ctx, *args, jaxpr, **params):
    half = len(args) // 2
    return _reduce_window(
        ctx, args[:half], args[half:], list(ctx.avals_out), ctx.jaxpr_region(jaxpr), Windows(**params)
    )


@rule(p.select_and_gather_add_p)
def _select_and_gather_add(ctx, tangents, operand, *, select_prim, **params):
    """A window reduction of pairs (value, tangent); padding is worse than, or as good as, every value."""
    t_aval, aval = ctx.avals_in
    worst = ctx.constant(reductions.identities[_WORST[select_prim]](aval.dtype), aval.dtype)
    zero = ctx.constant(0, t_aval.dtype)
    scalar, t_scalar = ctx.tensor_type((), aval.dtype), ctx.tensor_type((), t_aval.dtype)

    def pick(x, t, y, u):
        keep = ctx.compare(x, y, _DIRECTION[select_prim])
        return [ctx.select(keep, x, y), ctx.select(keep, t, u)]

    out = ctx.avals_out[0]
    return _reduce_window(
        ctx, [operand, tangents], [worst, zero], [ctx.tensor_type(out.shape, aval.dtype), out],
        ctx.region([scalar, t_scalar] * 2, pick), Windows(**params),
    )[1]  # fmt: skip


def _select_and_scatter(ctx, operand, source, init, select_region, scatter_region, params):
    windows = Windows.of(**params)
    return ctx.emit(
        "stablehlo.select_and_scatter", [operand, source, init], regions=[select_region, scatter_region],
        window_dimensions=windows.window_dimensions, window_strides=windows.window_strides,
        padding=_pads(windows.padding),
    )  # fmt: skip


@rule(p.select_and_scatter_add_p)
def _select_and_scatter_add(ctx, source, operand, *, select_prim, **params):
    s_aval, aval = ctx.avals_in
    scalar = ctx.tensor_type((), aval.dtype)
    keep = ctx.region([scalar, scalar], lambda x, y: ctx.compare(x, y, _DIRECTION[select_prim]))
    add = ctx.reducer_region("stablehlo.add", s_aval.dtype)
    return _select_and_scatter(ctx, operand, source, ctx.constant(0, s_aval.dtype), keep, add, params)


@rule(p.select_and_scatter_p)
def _general(ctx, operand, source, init_value, *, select_jaxpr, scatter_jaxpr, **params):
    regions = ctx.jaxpr_region(select_jaxpr), ctx.jaxpr_region(scatter_jaxpr)
    return _select_and_scatter(ctx, operand, source, init_value, *regions, params)
