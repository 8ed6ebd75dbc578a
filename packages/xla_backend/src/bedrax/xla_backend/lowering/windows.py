"""The window primitives in StableHLO.

XLA's CPU compiler runs `reduce_window` and `select_and_scatter` element by element, but fuses and
vectorizes slices that are combined. So on CPU, small windows are lowered to slices (2 to 20 times faster
for pooling, 40 times for the gradient of max pooling over 2 x 2 windows that do not overlap).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from bedrax.core import dims
from bedrax.core.avals import aval_of
from bedrax.lax.filling import zeros_like
from bedrax.lax.primitives import elementwise, reductions
from bedrax.lax.primitives import windows as p
from bedrax.lax.primitives.conversions import convert_element_type
from bedrax.lax.primitives.windows import Windows
from bedrax.xla_backend.lowering.reductions import accumulator, combiner_region, fold_of_one
from bedrax.xla_backend.tables import lowering_rules, platform_rule

rule: Final = lowering_rules.rule
_DIRECTION = {elementwise.ge_p: "GE", elementwise.le_p: "LE"}
_WORST = {elementwise.ge_p: reductions.reduce_max_p, elementwise.le_p: reductions.reduce_min_p}


def _within(windows: Windows, shape: tuple) -> Windows:
    """The windows without the elements that are padding in all of them. XLA would visit those one by one.

    For reductions with the padding as their neutral element.
    """
    sizes, paddings = [], []
    for n, w, stride, (low, high), base, spread in zip(shape, *windows, strict=True):
        if base == spread == 1 and dims.is_constant_shape((n, w, stride, low, high)) and w > 1 and n > 0:
            last = (n + low + high - w) // stride * stride - low  # start of the last window
            front = max(0, min(-last, w - 1))
            back = max(0, min(w - low - n, w - 1 - front))
            w, low, high = w - front - back, low - front, high - back
        sizes.append(w)
        paddings.append((low, high))
    return windows._replace(window_dimensions=tuple(sizes), padding=tuple(paddings))


def _reduce_window(ctx, operands, inits, result_types, region, windows: Windows):
    if not all(ctx.is_static(pair) for pair in windows.padding):  # StableHLO supports only constant padding
        low, high, interior = zip(*windows.pad_config())
        shape = [
            dims.dilate_dim(n, base) + a + b
            for n, base, (a, b) in zip(ctx.avals_in[0].shape, windows.base_dilation, windows.padding, strict=True)
        ]
        operands = [ctx.pad(x, init, low, high, interior, shape) for x, init in zip(operands, inits, strict=True)]
        rank = len(shape)
        windows = windows._replace(padding=((0, 0),) * rank, base_dilation=(1,) * rank)
    return ctx.emit(
        "stablehlo.reduce_window",
        [*operands, *inits],
        result_types,
        regions=[region],
        window_dimensions=windows.window_dimensions,
        window_strides=windows.window_strides,
        base_dilations=windows.base_dilation,
        window_dilations=windows.window_dilation,
        padding=_pads(windows.padding),
    )


def _pads(padding) -> np.ndarray:
    if not all(dims.is_constant_shape(pair) for pair in padding):
        raise NotImplementedError(
            f"the gradient of a window reduction with padding {padding}, which depends on a symbolic size, has no"
            " StableHLO form; pad the operand first, or make the spatial sizes known"
        )
    return np.asarray(padding, np.int64).reshape(len(padding), 2)


@rule(p.reduce_window_sum_p, p.reduce_window_max_p, p.reduce_window_min_p)
def _known(ctx, x, **params):
    whole = p.reduction_of[ctx.prim]
    dtype = ctx.avals_in[0].dtype
    wide = accumulator(whole, dtype)
    init = ctx.constant(reductions.identities[whole](wide), wide)
    out = _reduce_window(
        ctx,
        [ctx.convert(x, wide)],
        [init],
        ctx.tensor_type(ctx.avals_out[0].shape, wide),
        combiner_region(ctx, whole, wide),
        _within(Windows(**params), ctx.avals_in[0].shape),
    )
    return ctx.convert(out, dtype)


@rule(p.reduce_window_p)
def _any(ctx, *args, jaxpr, **params):
    half = len(args) // 2
    if not ctx.avals_in[0].shape:
        return fold_of_one(ctx, *args, dimensions=(), jaxpr=jaxpr)
    return _reduce_window(
        ctx, args[:half], args[half:], list(ctx.avals_out), ctx.jaxpr_region(jaxpr), Windows(**params)
    )


@rule(p.select_and_gather_add_p)
def _select_and_gather_add(ctx, tangents, operand, *, select_prim, **params):
    """A window reduction of pairs (value, tangent). Padding is never better than a value."""
    t_aval, aval = ctx.avals_in
    worst = ctx.constant(reductions.identities[_WORST[select_prim]](aval.dtype), aval.dtype)
    zero = ctx.constant(0, t_aval.dtype)
    scalar, t_scalar = ctx.tensor_type((), aval.dtype), ctx.tensor_type((), t_aval.dtype)

    def pick(x, t, y, u):
        keep = ctx.compare(x, y, _DIRECTION[select_prim])
        return [ctx.select(keep, x, y), ctx.select(keep, t, u)]

    out = ctx.avals_out[0]
    return _reduce_window(
        ctx,
        [operand, tangents],
        [worst, zero],
        [ctx.tensor_type(out.shape, aval.dtype), out],
        ctx.region([scalar, t_scalar] * 2, pick),
        Windows(**params),
    )[1]


def _select_and_scatter(ctx, operand, source, init, select_region, scatter_region, params):
    windows = Windows.of(**params)
    return ctx.emit(
        "stablehlo.select_and_scatter",
        [operand, source, init],
        regions=[select_region, scatter_region],
        window_dimensions=windows.window_dimensions,
        window_strides=windows.window_strides,
        padding=_pads(windows.padding),
    )


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


# -- CPU: slices --------------------------------------------------------------------------------

_MOST_SLICES = 32  # per fused pass
_MOST_MASKS = 4
_FUNCTIONS = {prim: function for function, prim in reductions.monoids.items()}


def _by_slices(prim):
    whole = p.reduction_of[prim]
    general = lowering_rules[prim]
    combine = _FUNCTIONS[whole]

    def fold(x, **params):
        dtype = aval_of(x).dtype
        wide = accumulator(whole, dtype)
        x = x if wide == dtype else convert_element_type(x, wide)
        init = reductions.identities[whole](wide)
        for windows in _passes(Windows(**params)):
            (x,) = p.fold_windows(lambda a, b: [combine(a, b)], [x], [init], windows)
        return x if wide == dtype else convert_element_type(x, dtype)

    @platform_rule(prim, "cpu")
    def lower(ctx, x, **params):
        shape = ctx.avals_in[0].shape
        if not ctx.is_static(shape) or 0 in shape or _passes(Windows(**params)) is None:
            return general(ctx, x, **params)
        return ctx.lower_fun(fold, x, **params)


def _passes(windows: Windows) -> list | None:
    """Windows to reduce in order: all axes together, or one axis each; None if they are too large."""
    if math.prod(windows.window_dimensions) <= _MOST_SLICES:
        return [windows]
    if max(windows.window_dimensions) > _MOST_SLICES:
        return None
    rank = len(windows.padding)
    neutral = ((1,) * rank, (1,) * rank, ((0, 0),) * rank, (1,) * rank, (1,) * rank)
    return [
        Windows(*((*unit[:axis], given[axis], *unit[axis + 1 :]) for given, unit in zip(windows, neutral)))
        for axis in range(rank)
        if any(given[axis] != unit[axis] for given, unit in zip(windows, neutral))
    ]


for _prim in p.reduction_of:
    _by_slices(_prim)


@platform_rule(p.select_and_scatter_add_p, "cpu")
def _select_and_scatter_add_cpu(ctx, source, operand, *, select_prim, **params):
    windows = Windows.of(**params)
    few = windows.apart() and math.prod(windows.window_dimensions) <= _MOST_MASKS
    if not few or not ctx.is_static(ctx.avals_in[1].shape):
        return _select_and_scatter_add(ctx, source, operand, select_prim=select_prim, **params)

    def by_masks(ct, x):
        zeros = zeros_like(ct)
        parts = [elementwise.select(mask, ct, zeros) for mask in p.selected_masks(x, select_prim, windows)]
        return p.add_slices(parts, windows, aval_of(x).shape)

    return ctx.lower_fun(by_masks, source, operand)


def _gather_by_slices(ctx, tangents, operand, *, select_prim, **params):
    windows = Windows(**params)

    def keep_better(x, t, y, u):
        keep = select_prim.bind(x, y)
        return [elementwise.select(keep, x, y), elementwise.select(keep, t, u)]

    def fold(t, x):
        worst = reductions.identities[_WORST[select_prim]](aval_of(x).dtype)
        return p.fold_windows(keep_better, [x, t], [worst, np.zeros((), aval_of(t).dtype)], windows)[1]

    return ctx.lower_fun(fold, tangents, operand)


@platform_rule(p.select_and_gather_add_p, "cpu")
def _select_and_gather_add_cpu(ctx, tangents, operand, **params):
    small = math.prod(params["window_dimensions"]) <= _MOST_SLICES and ctx.is_static(ctx.avals_in[1].shape)
    return (_gather_by_slices if small else _select_and_gather_add)(ctx, tangents, operand, **params)


# XLA's GPU compilers do not support windows of pairs.
platform_rule(p.select_and_gather_add_p, "gpu")(_gather_by_slices)
