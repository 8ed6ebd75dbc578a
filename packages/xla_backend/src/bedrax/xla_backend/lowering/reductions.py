"""The reductions in StableHLO.

Sums and products of half-precision numbers are accumulated in float32. `argmax` is two plain reductions
(the greatest value, then the least index that has it). XLA vectorizes those, while the reduction of
pairs (value, index) is an element-by-element loop on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.typing import Shape
from bedrax.lax.primitives import reductions as p
from bedrax.xla_backend.tables import lowering_rules

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive
    from bedrax.xla_backend.lowering.program import LoweringContext


rule: Final = lowering_rules.rule

_OPS = {
    p.reduce_sum_p: "stablehlo.add",
    p.reduce_prod_p: "stablehlo.multiply",
    p.reduce_max_p: "stablehlo.maximum",
    p.reduce_min_p: "stablehlo.minimum",
    p.reduce_and_p: "stablehlo.and",
    p.reduce_or_p: "stablehlo.or",
    p.reduce_xor_p: "stablehlo.xor",
}


def accumulator(prim: Primitive, dtype: np.dtype) -> np.dtype:
    """The accumulator dtype for sums and products of `dtype`; `dtype` itself for other reductions."""
    if prim in (p.reduce_sum_p, p.reduce_prod_p) and dtype.itemsize < 4 and dtypes.issubdtype(dtype, np.floating):
        return np.dtype(np.float32)
    return dtype


def combiner_region(
    ctx: LoweringContext, prim: Primitive, dtype: np.dtype
) -> tuple[tuple[Any, ...], Callable[..., Any]]:
    """The region that combines two scalars by the reduction `prim`."""
    if dtype.kind == "c" and prim in (p.reduce_max_p, p.reduce_min_p):
        better = "GT" if prim is p.reduce_max_p else "LT"
        scalar = ctx.tensor_type((), dtype)
        return ctx.region([scalar, scalar], lambda x, y: _pick_complex(ctx, x, y, better))
    return ctx.reducer_region(_OPS[prim], dtype)


def _pick_complex(ctx, x, y, better: str):
    """The complex scalar that comes first in lexicographic order. NaN wins."""
    part = ctx.tensor_type((), np.dtype(np.float32 if ctx.dtype(x) == np.complex64 else np.float64))
    real = [ctx.emit("stablehlo.real", [v], part) for v in (x, y)]
    imag = [ctx.emit("stablehlo.imag", [v], part) for v in (x, y)]
    flag = ctx.tensor_type((), np.dtype(np.bool_))
    both = lambda a, b: ctx.emit("stablehlo.and", [a, b], flag)
    either = lambda a, b: ctx.emit("stablehlo.or", [a, b], flag)
    first = either(ctx.compare(*real, better), both(ctx.compare(*real, "EQ"), ctx.compare(*imag, better)))
    nan = either(ctx.compare(real[0], real[0], "NE"), ctx.compare(imag[0], imag[0], "NE"))
    return ctx.select(either(first, nan), x, y)


@rule(*_OPS)
def _reduce_known(ctx, x, *, axes):
    if not axes:
        return x
    prim, dtype = ctx.prim, ctx.avals_in[0].dtype
    wide = accumulator(prim, dtype)
    return ctx.convert(reduce_over(ctx, prim, ctx.convert(x, wide), axes, wide, ctx.avals_out[0].shape), dtype)


def reduce_over(
    ctx: LoweringContext,
    prim: Primitive,
    x: Any,
    axes: tuple[int, ...],
    dtype: np.dtype[Any],
    out_shape: tuple[int, ...],
) -> Any:
    """One of the supported reductions, of any value."""
    init = ctx.constant(p.identities[prim](dtype), dtype)
    return ctx.emit(
        "stablehlo.reduce",
        [x, init],
        ctx.tensor_type(out_shape, dtype),
        regions=[combiner_region(ctx, prim, dtype)],
        dimensions=axes,
    )


def _position(extreme):
    def lower(ctx, x, *, axes, index_dtype):
        (axis,) = axes
        aval, out = ctx.avals_in[0], ctx.avals_out[0]
        size = aval.shape[axis]
        large = dims.is_constant_dim(size) and size > np.iinfo(np.int32).max
        index = np.dtype(np.int64 if large else np.int32)
        best = reduce_over(ctx, extreme, x, axes, aval.dtype, out.shape)
        others = tuple([i for i in range(len(aval.shape)) if i != axis])
        found = ctx.compare(x, ctx.broadcast_in_dim(best, aval.shape, others), "EQ")
        if dtypes.issubdtype(aval.dtype, np.floating):
            nan = ctx.compare(x, x, "NE")
            found = ctx.emit("stablehlo.or", [found, nan], ctx.tensor_type(aval.shape, np.dtype(np.bool_)))
        where = iota(ctx, aval.shape, axis, index)
        none = ctx.full(aval.shape, np.iinfo(index).max, index)
        first = reduce_over(ctx, p.reduce_min_p, ctx.select(found, where, none), axes, index, out.shape)
        return ctx.convert(first, index_dtype)

    return lower


def iota(ctx: Any, shape: Shape, dimension: int, dtype: np.dtype) -> Any:
    """Indices along one axis, of a shape that may be symbolic."""
    result = ctx.tensor_type(shape, dtype)
    if ctx.is_static(shape):
        return ctx.emit("stablehlo.iota", [], result, iota_dimension=dimension)
    return ctx.emit("stablehlo.dynamic_iota", [ctx.shape_tensor(shape)], result, iota_dimension=dimension)


rule(p.argmax_p)(_position(p.reduce_max_p))
rule(p.argmin_p)(_position(p.reduce_min_p))


@rule(p.reduce_p)
def _reduce(ctx, *args, dimensions, jaxpr):
    region = ctx.jaxpr_region(jaxpr)
    return ctx.emit("stablehlo.reduce", args, list(ctx.avals_out), regions=[region], dimensions=dimensions)
