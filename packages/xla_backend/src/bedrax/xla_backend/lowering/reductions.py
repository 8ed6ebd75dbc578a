"""The reductions in StableHLO.

Sums and products of half-precision numbers are accumulated in float32. `argmax` is a reduction of pairs (value,
position); XLA makes the positions inside the loop and does not write them out. On a CPU this loop takes one element at
a time. So a long axis is cut into blocks there: a plain, vectorized reduction finds the extreme of each block, and only
the block that is first with the extreme of all is searched for its position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax import lax
from bedrax.batching.rules.reductions import over_arrays
from bedrax.core import dims, dtypes, positions
from bedrax.core.avals import aval_of
from bedrax.core.ir import run
from bedrax.core.typing import Shape
from bedrax.lax.primitives import reductions as p
from bedrax.xla_backend.tables import lowering_rules, platform_rule

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
    """The complex scalar that comes first in lexicographic order. If one is NaN, the result is NaN."""
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
    if wide == dtype:
        return reduce_over(ctx, prim, x, axes, dtype, ctx.avals_out[0].shape)
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


_BLOCKS_FROM = 1024  # shorter axes are reduced as pairs on CPU, too


def _first_extreme(x, axis: int, better: Callable, worst: Any, index: np.dtype):
    """The position of the first extreme element along an axis, or of the first NaN: a reduction of pairs."""
    floating = dtypes.issubdtype(x.dtype, np.floating)

    def earlier(a, b):
        (x, i), (y, j) = a, b
        wins, same = better(x, y), lax.eq(x, y)
        first = wins
        if floating:
            nan = lax.ne(x, x)
            same = lax.bitwise_or(same, lax.bitwise_and(nan, lax.ne(y, y)))
            wins = lax.bitwise_or(wins, nan)
            first = lax.bitwise_and(wins, lax.eq(y, y))
        first = lax.bitwise_or(first, lax.bitwise_and(same, lax.lt(i, j)))
        return lax.select(wins, x, y), lax.select(first, i, j)

    where = lax.broadcasted_iota(index, x.shape, axis)
    return lax.reduce((x, where), (worst, index.type(np.iinfo(index).max)), earlier, (axis,))[1]


def _first_extreme_by_blocks(x, axis: int, better: Callable, worst: Any, index: np.dtype, extreme: Callable):
    """The same, for a CPU: see the top of this module. The last block overlaps the one before it."""
    n, rank = x.shape[axis], len(x.shape)
    size = min(1024, 1 << (n.bit_length() // 2))
    sizes = tuple([size if d == axis else 1 for d in range(rank)])
    # XLA's kernels for the maximum of floats lose NaN on CPU. XLA does not use them for this function.
    larger = lambda a, b: lax.select(lax.bitwise_or(better(a, b), lax.ne(a, a)), a, b)
    combine = larger if dtypes.issubdtype(x.dtype, np.floating) else extreme
    extremes = lax.reduce_window(x, worst, combine, sizes, sizes, "VALID")
    if n % size:
        last = lax.reduce(lax.slice_in_dim(x, n - size, n, axis=axis), worst, combine, (axis,))
        extremes = lax.concatenate([extremes, lax.expand_dims(last, (axis,))], axis)
    block = _first_extreme(extremes, axis, better, worst, index)
    start = lax.min(lax.mul(block, lax.full_like(block, size)), lax.full_like(block, n - size))
    others = tuple([d for d in range(rank) if d != axis])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(rank - 1,),
        collapsed_slice_dims=(),
        start_index_map=(axis,),
        operand_batching_dims=others,
        start_indices_batching_dims=tuple(range(rank - 1)),
    )
    found = lax.gather(x, lax.expand_dims(start, (rank - 1,)), numbers, sizes, mode="clip")
    return lax.add(start, _first_extreme(found, rank - 1, better, worst, index))


def _position(prim, reduction, better, extreme):
    def lower(ctx, x, *, axes, index_dtype, by_blocks=False):
        (axis,) = axes
        aval = ctx.avals_in[0]
        index = positions.dtype_for(aval.shape[axis])
        constants = axis, better, p.identities[reduction](aval.dtype), index
        with positions.scope(aval.shape[axis]):
            if by_blocks:
                first = ctx.lower_fun(lambda x: _first_extreme_by_blocks(x, *constants, extreme), x)
            else:
                first = ctx.lower_fun(lambda x: _first_extreme(x, *constants), x)
        return ctx.convert(first, index_dtype)

    def on_cpu(ctx, x, *, axes, index_dtype):
        shape = ctx.avals_in[0].shape
        by_blocks = (
            ctx.is_static(shape)
            and shape[axes[0]] >= _BLOCKS_FROM
            and 0 not in shape
            and ctx.program.num_partitions == 1
        )
        return lower(ctx, x, axes=axes, index_dtype=index_dtype, by_blocks=by_blocks)

    rule(prim)(lower)
    platform_rule(prim, "cpu")(on_cpu)


def iota(ctx: Any, shape: Shape, dimension: int, dtype: np.dtype) -> Any:
    """Indices along one axis, of a shape that may be symbolic."""
    result = ctx.tensor_type(shape, dtype)
    if ctx.is_static(shape):
        return ctx.emit("stablehlo.iota", [], result, iota_dimension=dimension)
    return ctx.emit("stablehlo.dynamic_iota", [ctx.shape_tensor(shape)], result, iota_dimension=dimension)


_position(p.argmax_p, p.reduce_max_p, lax.gt, lax.max)
_position(p.argmin_p, p.reduce_min_p, lax.lt, lax.min)


@rule(p.reduce_p)
def _reduce(ctx, *args, dimensions, jaxpr):
    kinds = [aval.dtype for aval in ctx.avals_in[: len(args) // 2]]
    if len(set(kinds)) > 1 and any(dtype in dtypes.narrow_int_dtypes for dtype in kinds):
        # XLA's CPU compiler does not reduce integers of 2 bits together with operands of another dtype.
        return ctx.lower_fun(lambda *args: _reduce_in_bytes(args, dimensions, jaxpr, kinds), *args)
    shape = ctx.avals_in[0].shape
    count = dims.size([shape[d] for d in dimensions])
    if dims.is_constant_dim(count) and count == 1:
        return fold_of_one(ctx, *args, dimensions=dimensions, jaxpr=jaxpr)
    region = ctx.jaxpr_region(jaxpr)
    out = ctx.emit("stablehlo.reduce", args, list(ctx.avals_out), regions=[region], dimensions=dimensions)
    if dims.is_constant_dim(count):
        return out
    is_one = ctx.compare(ctx.dim_value(count), ctx.constant(1, np.int32), "EQ")
    of_one = fold_of_one(ctx, *args, dimensions=dimensions, jaxpr=jaxpr)
    return [ctx.select(is_one, x, y) for x, y in zip(of_one, out if isinstance(out, list) else [out], strict=True)]


def fold_of_one(ctx: Any, *args: Any, dimensions: Sequence[int], jaxpr: Any) -> list[Any]:
    """The fold of the first element along `dimensions`: the initial value combined with it.

    XLA leaves the initial value of a reduction out if there is a single element to fold.
    """

    def fold(*args):
        half = len(args) // 2
        shape = aval_of(args[0]).shape
        kept = [d for d in range(len(shape)) if d not in dimensions]
        limits = [1 if d in dimensions else n for d, n in enumerate(shape)]
        # The operand may be empty if a size is symbolic. Then the padding is the first element.
        fill = [(0, int(not dims.is_constant_dim(n) and d in dimensions), 0) for d, n in enumerate(shape)]
        outer = [shape[d] for d in kept]
        firsts = [
            lax.reshape(lax.slice(lax.pad(x, init, fill), [0] * len(shape), limits), outer)
            for x, init in zip(args[:half], args[half:], strict=True)
        ]
        return over_arrays(jaxpr)(*[lax.broadcast_in_dim(init, outer, ()) for init in args[half:]], *firsts)

    return ctx.lower_fun(fold, *args)


def _reduce_in_bytes(args, dimensions, jaxpr, kinds):
    """`lax.reduce` of several operands, whose narrow integers are held in 8 bits between two steps."""
    held = [np.dtype(np.uint8 if d in dtypes.unsigned_dtypes else np.int8) for d in dtypes.narrow_int_dtypes]
    wide = dict(zip(dtypes.narrow_int_dtypes, held, strict=True))
    convert = lambda xs, to: tuple(map(lax.convert_element_type, xs, to))
    bytes_of = lambda xs: convert(xs, [wide.get(d, d) for d in kinds])

    def step(a, b):
        return bytes_of(run(jaxpr, *convert(a, kinds), *convert(b, kinds)))

    count = len(kinds)
    return list(convert(lax.reduce(bytes_of(args[:count]), bytes_of(args[count:]), step, dimensions), kinds))
