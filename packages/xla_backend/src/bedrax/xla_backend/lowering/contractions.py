"""StableHLO of contractions."""

from __future__ import annotations

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.lax.primitives.contractions import (  # fmt: skip
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    dot_general_p,
    product_dtype,
    ragged_dot_general_p,
    ragged_kind,
    scaled_dot_p,
)
from bedrax.xla_backend.tables import lower_fun, lowering_rules

_CPU_ALGORITHMS = frozenset(
    "DEFAULT F16_F16_F16 F32_F32_F32 F64_F64_F64 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6".split()
)


def precision_config(ctx, precision) -> tuple:
    """The attribute ``precision_config`` for a pair of `Precision`, or defaults."""
    pair = precision if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm) else None
    lhs, rhs = pair or (Precision.DEFAULT, Precision.DEFAULT)
    return ctx.parse(f"#stablehlo<precision {lhs.name}>"), ctx.parse(f"#stablehlo<precision {rhs.name}>")


def _algorithm_text(algorithm, lhs, rhs, out) -> str:
    """A `DotAlgorithm` or preset as the text of StableHLO's attribute; operand dtypes stand for "any"."""
    if isinstance(algorithm, DotAlgorithmPreset):
        name = algorithm.name.removesuffix("_FAST_ACCUM")
        types = [t.lower() for t in name.split("_") if not t.startswith("X") and t != "F8"]
        given = [_type_text(dtype) for dtype in (lhs, rhs, out)]
        types = [g if t == "any" else t for t, g in zip(types, given, strict=True)]
        products = int(name.split("_X")[1]) if "_X" in name else 1
        counts, fast = (1, 1, products), algorithm.name.endswith("_FAST_ACCUM")
    else:
        types = [_type_text(np.dtype(t)) for t in algorithm[:3]]
        counts, fast = algorithm[3:6], algorithm.allow_imprecise_accumulation
    return (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {types[0]}, rhs_precision_type = {types[1]}, accumulation_type ="
        f" {types[2]}, lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, num_primitive_operations ="
        f" {counts[2]}, allow_imprecise_accumulation = {str(fast).lower()}>"
    )


def _type_text(dtype: np.dtype) -> str:
    name = dtype.name
    if name.startswith("float8_"):
        return "f8" + name.removeprefix("float8_").upper()
    return name.replace("bfloat", "bf").replace("float", "f")


def same_sort(x: np.dtype, y: np.dtype) -> bool:
    groups = (dtypes.signed_dtypes, dtypes.unsigned_dtypes, dtypes.float_dtypes, dtypes.complex_dtypes)
    return any(x in g and y in g for g in groups)


def storage_dtype(ctx, common: np.dtype) -> np.dtype:
    """The dtype that operands are multiplied in, given the one they have in common."""
    if common in dtypes.narrow_int_dtypes:
        return np.dtype(np.int32)
    if ctx.platform == "cpu" and common in dtypes.narrow_float_dtypes:
        return np.dtype(np.float32)  # XLA's CPU would round every partial sum
    return common


@lowering_rules.rule(dot_general_p)
def _dot_general(
    ctx, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None
):
    (lc, rc), (lb, rb) = dimension_numbers
    (x, y), out = ctx.avals_in, ctx.avals_out[0]
    numbers = ctx.parse(
        f"#stablehlo.dot<lhs_batching_dimensions = {[*lb]}, rhs_batching_dimensions = {[*rb]},"
        f" lhs_contracting_dimensions = {[*lc]}, rhs_contracting_dimensions = {[*rc]}>"
    )
    attributes = dict(dot_dimension_numbers=numbers, precision_config=precision_config(ctx, precision))
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return _with_algorithm(ctx, lhs, rhs, precision, attributes)
    common = product_dtype(x.dtype, y.dtype)
    result = out.dtype
    if product_dtype(common, result) != result:  # narrower than the operands: round at the end
        result = common
    elif x.dtype != y.dtype or not same_sort(common, result):
        common = result
    storage = storage_dtype(ctx, common)
    if storage != common:
        result = storage if product_dtype(storage, result) == storage else result
    value = ctx.emit(
        "stablehlo.dot_general", [ctx.convert(lhs, storage), ctx.convert(rhs, storage)],
        ctx.tensor_type(out.shape, result), **attributes,
    )  # fmt: skip
    if result in dtypes.complex_dtypes and out.dtype not in dtypes.complex_dtypes:
        real = np.dtype(np.float32 if result == np.complex64 else np.float64)
        value = ctx.emit("stablehlo.real", [value], ctx.tensor_type(out.shape, real))
    return ctx.convert(value, out.dtype)


def _with_algorithm(ctx, lhs, rhs, algorithm, attributes):
    (x, y), out = ctx.avals_in, ctx.avals_out[0]
    supported = not isinstance(algorithm, DotAlgorithmPreset) or algorithm.name in _CPU_ALGORITHMS
    if ctx.platform == "cpu" and not supported:
        raise ValueError(
            f"The precision '{algorithm}' is not supported by dot_general on CPU; supported are"
            f" {', '.join(sorted(_CPU_ALGORITHMS))} and the values of lax.Precision."
        )
    if isinstance(algorithm, DotAlgorithmPreset):
        stored = algorithm.supported_lhs_types
        types = [
            d if stored is None or d in map(np.dtype, stored) else np.dtype(stored[0])
            for d in (x.dtype, y.dtype)
        ]
        if types[0] != types[1] and stored is not None:
            types = [product_dtype(*types)] * 2
        outs = algorithm.supported_output_types(*types)
    else:
        types = [np.dtype(algorithm.lhs_precision_type), np.dtype(algorithm.rhs_precision_type)]
        outs = (algorithm.accumulation_type,)
    result = out.dtype if outs is None or out.dtype in map(np.dtype, outs) else np.dtype(outs[0])
    text = _algorithm_text(algorithm, *types, result)
    value = ctx.emit(
        "stablehlo.dot_general", [ctx.convert(lhs, types[0]), ctx.convert(rhs, types[1])],
        ctx.tensor_type(out.shape, result), algorithm=ctx.parse(text), **attributes,
    )  # fmt: skip
    return ctx.convert(value, out.dtype)


def _ragged_as_dense(
    lhs,
    rhs,
    sizes,
    *offset,
    ragged_dot_dimension_numbers,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    """A ragged product as one dense product: `lhs` once per group, zero outside the group."""
    from bedrax import lax

    numbers = ragged_dot_dimension_numbers
    x, y, s = aval_of(lhs), aval_of(rhs), aval_of(sizes)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    kind, prefix = ragged_kind(x.ndim, numbers)
    options = dict(precision=precision, preferred_element_type=preferred_element_type, out_sharding=None)
    if kind == "batch":
        return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, **options)
    (cut,) = numbers.lhs_ragged_dimensions
    sizes = lax.convert_element_type(sizes, np.dtype(np.int32))
    ends = lax.cumsum(sizes, s.ndim - 1)
    starts = lax.sub(ends, sizes)
    if offset:  # the group of matrix i is i + offset; of one that does not exist, an empty one
        (group,) = numbers.rhs_group_dimensions
        groups = y.shape[group]
        first = lax.convert_element_type(lax.squeeze(offset[0], (0,)), np.dtype(np.int32))
        wanted = lax.add(lax.iota(np.int32, groups), first)
        chosen = lax.eq(
            lax.broadcast_in_dim(wanted, (s.shape[-1], groups), (1,)),
            lax.broadcasted_iota(np.int32, (s.shape[-1], groups), 0),
        )
        pick = dict(dimension_numbers=(((s.ndim - 1,), (0,)), ((), ())), precision=None, preferred_element_type=None,
                    out_sharding=None)  # fmt: skip
        chosen = lax.convert_element_type(chosen, np.dtype(np.int32))
        starts, ends = dot_general_p.bind(starts, chosen, **pick), dot_general_p.bind(ends, chosen, **pick)
    groups = aval_of(ends).shape[-1]
    shape = (groups, *x.shape)
    # `starts` and `ends` are indexed by the prefix, then the group; both masks are by group, then lhs.
    at = (0,) if s.ndim == 1 else (*[d + 1 for d in prefix], 0)

    def spread(v):
        order = sorted(range(len(at)), key=at.__getitem__)
        v = lax.transpose(v, tuple(order)) if len(at) > 1 else v
        return lax.broadcast_in_dim(v, shape, tuple(sorted(at)))

    position = lax.broadcasted_iota(np.int32, shape, cut + 1)
    inside = lax.bitwise_and(lax.ge(position, spread(starts)), lax.lt(position, spread(ends)))
    stacked = lax.broadcast_in_dim(lhs, shape, tuple(range(1, x.ndim + 1)))
    masked = lax.select(inside, stacked, lax.full_like(stacked, 0))
    up = lambda ds: tuple([d + 1 for d in ds])
    if kind == "free":
        dims = (((0, *up(lc)), (*numbers.rhs_group_dimensions, *rc)), (up(lb), rb))
        return dot_general_p.bind(masked, rhs, dimension_numbers=dims, **options)
    out = dot_general_p.bind(masked, rhs, dimension_numbers=((up(lc), rc), (up(lb), rb)), **options)
    rank, n = len(aval_of(out).shape), len(lb)
    return lax.transpose(out, (n, *range(n), *range(n + 1, rank)))


def _scaled_as_dense(lhs, rhs, lhs_scale, rhs_scale, *, dimension_numbers, preferred_element_type):
    from bedrax import lax

    def scaled(x, scale):
        shape, blocks = aval_of(x).shape, aval_of(scale).shape
        split = [
            n for size, b in zip(shape, blocks, strict=True) for n in ((b,) if size == b else (b, size // b))
        ]
        kept, i = [], 0
        for size, b in zip(shape, blocks, strict=True):
            kept.append(i)
            i += 1 if size == b else 2
        scale = lax.convert_element_type(scale, preferred_element_type)
        scale = lax.reshape(lax.broadcast_in_dim(scale, tuple(split), tuple(kept)), shape)
        return lax.mul(lax.convert_element_type(x, preferred_element_type), scale)

    return dot_general_p.bind(
        scaled(lhs, lhs_scale), scaled(rhs, rhs_scale), dimension_numbers=dimension_numbers, precision=None,
        preferred_element_type=preferred_element_type, out_sharding=None,
    )  # fmt: skip


lower_fun(ragged_dot_general_p, _ragged_as_dense)
lower_fun(scaled_dot_p, _scaled_as_dense)
