"""The sorting primitives in StableHLO.

On every platform, floating-point keys are compared in total order, with -0 equal to 0 and one NaN for all NaNs.
XLA's CPU sort calls the comparator for each pair, unless it is a plain comparison of one integer
array, which is about 6 times faster. So on CPU a single array is sorted as integers of its order, and arrays
with one key as 64-bit integers ``key << 32 | position``, whose positions then permute the arrays. (Zeros of
either sign are equal, but in a single array sorted on CPU, -0 comes before 0.)
"""

from __future__ import annotations

import numpy as np

from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import sorting as p
from bedrax.lax.primitives.shaping import canonical_axis
from bedrax.xla_backend.door.versions import has
from bedrax.xla_backend.lowering.reductions import iota
from bedrax.xla_backend.lowering.shaping import in_bytes
from bedrax.xla_backend.tables import lowering_rules, platform_rule

_BOOL = np.dtype(np.bool_)


def _is_float(dtype) -> bool:
    return dtypes.issubdtype(dtype, np.floating)


def _sort_op(ctx, operands, dimension: int, is_stable: bool, less, num_results: int) -> list:
    """`stablehlo.sort` of values of one shape; ``less(xs, ys)`` compares two lists of scalars."""
    if any(ctx.dtype(v) in dtypes.narrow_int_dtypes for v in operands):
        return in_bytes(ctx, operands, lambda vs: _sort_op(ctx, vs, dimension, is_stable, less, len(vs)))[:num_results]
    scalars = [ctx.tensor_type((), ctx.dtype(v)) for v in operands]
    region = ctx.region([t for t in scalars for _ in range(2)], lambda *args: less(args[::2], args[1::2]))
    return ctx.emit(
        "stablehlo.sort",
        operands,
        [v.type for v in operands],
        regions=[region],
        dimension=dimension,
        is_stable=is_stable,
    )[:num_results]


# -- the general comparator -------------------------------------------------------------------


def _canonical(ctx, x):
    """A floating-point value with one zero and one NaN."""
    dtype = ctx.dtype(x)
    shape = ctx.shape(x)
    x = ctx.select(ctx.compare(x, ctx.full(shape, 0, dtype), "EQ"), ctx.full(shape, 0, dtype), x)
    return ctx.select(ctx.compare(x, x, "NE"), ctx.full(shape, np.nan, dtype), x)


def _scalar_keys(ctx, x) -> list:
    """A scalar as a list of real numbers to compare in order."""
    dtype = ctx.dtype(x)
    if dtype.kind == "c":
        part = ctx.tensor_type((), np.dtype(np.float32 if dtype == np.complex64 else np.float64))
        return [_canonical(ctx, ctx.emit(f"stablehlo.{name}", [x], part)) for name in ("real", "imag")]
    if _is_float(dtype):
        return [_canonical(ctx, ctx.convert(x, np.float32) if dtype.itemsize < 2 else x)]
    return [x]


def _less(ctx, num_keys: int):
    """Lexicographic "less" on the first `num_keys` scalars of two lists."""

    def less(xs, ys):
        pairs = [pair for x, y in zip(xs[:num_keys], ys) for pair in zip(_scalar_keys(ctx, x), _scalar_keys(ctx, y))]
        flag = ctx.tensor_type((), _BOOL)
        out = None
        for x, y in reversed(pairs):
            kind = "TOTALORDER" if _is_float(ctx.dtype(x)) else None
            below = ctx.compare(x, y, "LT", kind)
            if out is None:
                out = below
            else:
                tie = ctx.emit("stablehlo.and", [ctx.compare(x, y, "EQ", kind), out], flag)
                out = ctx.emit("stablehlo.or", [below, tie], flag)
        return out

    return less


@lowering_rules.rule(p.sort_p)
def _sort(ctx, *operands, dimension, is_stable, num_keys):
    return _sort_op(ctx, operands, dimension, is_stable, _less(ctx, num_keys), len(operands))


# -- sorting integers -------------------------------------------------------------------------


def _order(ctx, x, canonical_zero: bool):
    """Signed integers, of the same width, in the order of `x`; see `_restore`."""
    dtype, shape = ctx.dtype(x), ctx.shape(x)
    if not _is_float(dtype):
        if dtype == _BOOL:
            return ctx.convert(x, np.int32)
        return x
    x = ctx.select(ctx.compare(x, x, "NE"), ctx.full(shape, np.nan, dtype), x)
    integer = _integer(dtype)
    bits = ctx.emit("stablehlo.bitcast_convert", [x], ctx.tensor_type(shape, integer))
    if canonical_zero:  # on bits: XLA's CPU compares subnormal numbers as 0
        negative_zero = ctx.full(shape, np.iinfo(integer).min, integer)
        bits = ctx.select(ctx.compare(bits, negative_zero, "EQ"), ctx.full(shape, 0, integer), bits)
    return _flip(ctx, bits)


def _integer(dtype) -> np.dtype:
    return np.dtype(f"i{dtype.itemsize}")


def _flip(ctx, bits):
    """From sign and magnitude to two's complement, or back."""
    dtype, shape = ctx.dtype(bits), ctx.shape(bits)
    flipped = ctx.binary("stablehlo.xor", bits, ctx.full(shape, np.iinfo(dtype).max, dtype))
    return ctx.select(ctx.compare(bits, ctx.full(shape, 0, dtype), "LT"), flipped, bits)


def _restore(ctx, order, dtype):
    if not _is_float(dtype):
        return ctx.convert(order, dtype)
    return ctx.emit("stablehlo.bitcast_convert", [_flip(ctx, order)], ctx.tensor_type(ctx.shape(order), dtype))


def _sort_integers(ctx, x, dimension: int):
    less = lambda xs, ys: ctx.compare(xs[0], ys[0], "LT")
    return _sort_op(ctx, [x], dimension, True, less, 1)[0]


def _pack(ctx, x, dimension: int):
    """64-bit integers: the order of `x`, then the position along the axis."""
    shape = ctx.shape(x)
    high = ctx.convert(_order(ctx, x, canonical_zero=True), np.int64)
    if ctx.dtype(x) == np.uint32:  # center, so that the shift keeps the order
        high = ctx.binary("stablehlo.subtract", high, ctx.full(shape, 2**31, np.int64))
    high = ctx.binary("stablehlo.shift_left", high, ctx.full(shape, 32, np.int64))
    return ctx.binary("stablehlo.or", high, iota(ctx, shape, dimension, np.dtype(np.int64)))


def _take(ctx, x, index, axis: int):
    """`x` at int64 positions along one axis, with the other axes as batch axes."""
    shape = ctx.shape(x)
    rank = len(shape)
    others = [i for i in range(rank) if i != axis]
    numbers = ctx.parse(
        f"#stablehlo.gather<collapsed_slice_dims = [{axis}], operand_batching_dims = {others},"
        f" start_indices_batching_dims = {others}, start_index_map = [{axis}], index_vector_dim = {rank}>"
    )
    return ctx.emit(
        "stablehlo.gather",
        [x, ctx.reshape(index, (*shape, 1))],
        x.type,
        dimension_numbers=numbers,
        slice_sizes=(1,) * rank,
        indices_are_sorted=False,
    )


@platform_rule(p.sort_p, "cpu")
def _sort_cpu(ctx, *operands, dimension, is_stable, num_keys):
    key = ctx.avals_in[0]
    if any(dims.definitely_equal(n, 0) for n in key.shape):
        return list(operands)
    plain = (
        ctx.is_static(key.shape)
        and key.dtype.kind != "c"
        and not (key.dtype in dtypes.narrow_int_dtypes or key.dtype in dtypes.narrow_float_dtypes)
    )
    if plain and len(operands) == 1:
        return [_restore(ctx, _sort_integers(ctx, _order(ctx, operands[0], False), dimension), key.dtype)]
    if plain and num_keys == 1 and key.dtype.itemsize <= 4 and key.shape[dimension] < 2**31:
        packed = _sort_integers(ctx, _pack(ctx, operands[0], dimension), dimension)
        low = ctx.full(key.shape, 2**32 - 1, np.int64)
        index = ctx.convert(ctx.binary("stablehlo.and", packed, low), np.int32)
        return [_take(ctx, x, index, dimension) for x in operands]
    return _sort(ctx, *operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys)


# -- the k largest ------------------------------------------------------------------------------


def _largest(ctx, x, k, axis: int, is_stable: bool = True) -> list:
    """Values and int32 positions of the `k` largest along an axis."""
    aval = ctx.avals_in[0]
    rank = len(aval.shape)
    last = tuple([i for i in range(rank) if i != axis]) + (axis,)
    # Dtypes that XLA's top-k does not support are converted to wider ones.
    inner = aval.dtype
    if inner in dtypes.narrow_int_dtypes or inner in dtypes.narrow_float_dtypes or inner == _BOOL:
        inner = np.dtype(np.float32 if _is_float(inner) else np.int32)
    values = ctx.convert(ctx.transpose(x, last), inner)
    shape = tuple([aval.shape[i] for i in last[:-1]]) + (k,)
    types = [ctx.tensor_type(shape, inner), ctx.tensor_type(shape, np.dtype(np.int32))]
    order = {} if is_stable or not has("chlo.top_k in any order") else {"is_stable": False}
    values, index = ctx.emit("chlo.top_k", [values], types, k=k, **order)
    back = tuple(int(i) for i in np.argsort(last))
    return [ctx.transpose(ctx.convert(values, aval.dtype), back), ctx.transpose(index, back)]


@lowering_rules.rule(p.top_k_p)
def _top_k(ctx, x, *, k, axis, is_stable=True):
    if dims.is_constant_dim(k):
        return _largest(ctx, x, k, axis, is_stable)
    return _symbolically_many(ctx, x, k, axis)


def _symbolically_many(ctx, x, k, axis: int) -> list:
    return ctx.lower_fun(_first_of_sorted, x, k=k, axis=axis)


def _first_of_sorted(x, *, k, axis):
    """The `k` largest, for a symbolic `k`: sorted in reverse from the end, so that equal elements keep their order."""
    shape = aval_of(x).shape
    index = lax.broadcasted_iota(np.int32, shape, axis)
    out = p.sort_p.bind(lax.rev(x, (axis,)), lax.rev(index, (axis,)), dimension=axis, is_stable=True, num_keys=1)
    return [lax.slice_in_dim(lax.rev(y, (axis,)), 0, k, 1, axis) for y in out]


@lowering_rules.rule(p.approx_top_k_p)
def _approx_top_k(ctx, x, *, reduction_dimension, is_max_k, **params):
    """Exact: the first results of `top_k` (of the negated operand, for the smallest elements)."""
    aval = ctx.avals_in[0]
    axis = canonical_axis(reduction_dimension, len(aval.shape))
    k = ctx.avals_out[0].shape[axis]
    find = _largest if dims.is_constant_dim(k) else _symbolically_many
    if is_max_k:
        return find(ctx, x, k, axis)
    values, index = find(ctx, ctx.unary("stablehlo.negate", x), k, axis)
    return [ctx.unary("stablehlo.negate", values), index]
