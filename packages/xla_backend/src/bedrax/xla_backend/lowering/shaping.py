"""The shaping primitives in StableHLO."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import shaping as p
from bedrax.xla_backend.tables import lowering_rules

if TYPE_CHECKING:
    from bedrax.xla_backend.lowering.program import LoweringContext


rule: Final = lowering_rules.rule


@rule(p.broadcast_in_dim_p)
def _broadcast_in_dim(ctx, x, *, shape, broadcast_dimensions):
    return ctx.broadcast_in_dim(x, shape, broadcast_dimensions, ctx.own_result())


@rule(p.reshape_p)
def _reshape(ctx, x, *, new_sizes, dimensions):
    return ctx.reshape(x if dimensions is None else ctx.transpose(x, dimensions), new_sizes, ctx.own_result())


@rule(p.transpose_p)
def _transpose(ctx, x, *, permutation):
    return ctx.transpose(x, permutation, ctx.own_result())


@rule(p.squeeze_p)
def _squeeze(ctx, x, *, dimensions):
    return ctx.reshape(x, ctx.avals_out[0].shape, ctx.own_result())


@rule(p.rev_p)
def _rev(ctx, x, *, dimensions):
    return ctx.emit("stablehlo.reverse", [x], dimensions=dimensions)


@rule(p.slice_p)
def _slice(ctx, x, *, start_indices, limit_indices, strides=None):
    return ctx.slice(x, start_indices, limit_indices, strides)


@rule(p.pad_p)
def _pad(ctx, x, padding_value, *, padding_config):
    low, high, interior = zip(*padding_config) if padding_config else ((), (), ())
    return ctx.pad(x, padding_value, low, high, interior)


def in_bytes(ctx: LoweringContext, operands: list[Any] | tuple[Any, ...], emit: Callable[..., Any]) -> list[Any]:
    """``emit(operands)``, a list of values. Integers of less than a byte are widened before it and narrowed after it.

    XLA's CPU compiler packs those, but some of its kernels compute addresses for unpacked elements.
    """
    narrow = {i: ctx.dtype(x) for i, x in enumerate(operands) if ctx.dtype(x) in dtypes.narrow_int_dtypes}
    if not narrow:
        return emit(operands)
    wide = lambda dtype: np.dtype(np.uint8 if dtype in dtypes.unsigned_dtypes else np.int8)
    out = emit([ctx.convert(x, wide(narrow[i])) if i in narrow else x for i, x in enumerate(operands)])
    return [ctx.convert(y, narrow[i]) if i in narrow else y for i, y in enumerate(out)]


def _joined(ctx, xs, dimension: int):
    if len(xs) == 1:
        return xs[0]
    shape = ctx.avals_out[0].shape
    join = lambda xs: [
        ctx.emit("stablehlo.concatenate", xs, ctx.tensor_type(shape, ctx.dtype(xs[0])), dimension=dimension)
    ]
    return in_bytes(ctx, xs, join)[0]


@rule(p.concatenate_p)
def _concatenate(ctx, *xs, dimension):
    return _joined(ctx, xs, dimension)


@rule(p.stack_p)
def _stack(ctx, *xs, axis):
    shape = ctx.avals_in[0].shape
    return _joined(ctx, [ctx.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in xs], axis)


def _part(ctx, x, axis, start, stop):
    """The elements ``start:stop`` of an axis."""
    limits = list(ctx.avals_in[0].shape)
    starts = [0] * len(limits)
    starts[axis], limits[axis] = start, stop
    return ctx.slice(x, starts, limits)


@rule(p.unstack_p)
def _unstack(ctx, x, *, axis):
    return [ctx.reshape(_part(ctx, x, axis, i, i + 1), aval.shape) for i, aval in enumerate(ctx.avals_out)]


@rule(p.split_p)
def _split(ctx, x, *, sizes, axis):
    out, start = [], 0
    for size in sizes:
        out.append(_part(ctx, x, axis, start, start + size))
        start = start + size
    return out


@rule(p.tile_p)
def _tile(ctx, x, *, reps):
    shape = ctx.avals_in[0].shape
    repeated = tuple([n for pair in zip(reps, shape) for n in pair])
    return ctx.reshape(ctx.broadcast_in_dim(x, repeated, tuple(range(1, 2 * len(shape), 2))), ctx.avals_out[0].shape)


@rule(p.iota_p)
def _iota(ctx, *, dtype, shape, dimension):
    if ctx.is_static(shape):
        return ctx.emit("stablehlo.iota", [], iota_dimension=dimension)
    return ctx.emit("stablehlo.dynamic_iota", [ctx.shape_tensor(shape)], iota_dimension=dimension)


@rule(p.empty_p)
def _empty(ctx, *, shape, dtype):
    return ctx.full(shape, 0, dtype)
