"""StableHLO of contractions."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import contractions as p
from bedrax.xla_backend import platforms
from bedrax.xla_backend.lowering.types import attribute, parse
from bedrax.xla_backend.tables import lowering_rules

_CPU_ALGORITHMS = frozenset(
    "DEFAULT F16_F16_F16 F32_F32_F32 F64_F64_F64 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6".split()
)


def precision_config(precision: Any) -> Any:
    """The attribute ``precision_config`` for a pair of `Precision`, or defaults."""
    pair = precision if isinstance(precision, tuple) and not isinstance(precision, p.DotAlgorithm) else None
    return _precisions(*(pair or (p.Precision.DEFAULT, p.Precision.DEFAULT)))


@functools.cache
def _precisions(lhs, rhs):
    return attribute((parse(f"#stablehlo<precision {lhs.name}>"), parse(f"#stablehlo<precision {rhs.name}>")))


def _algorithm_text(algorithm, lhs, rhs, out) -> str:
    """A `DotAlgorithm` or preset as the text of StableHLO's attribute. Operand dtypes replace "any"."""
    if isinstance(algorithm, p.DotAlgorithmPreset):
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


def _same_sort(x: np.dtype, y: np.dtype) -> bool:
    groups = (dtypes.signed_dtypes, dtypes.unsigned_dtypes, dtypes.float_dtypes, dtypes.complex_dtypes)
    return any(x in g and y in g for g in groups)


def _storage_dtype(platform, common: np.dtype) -> np.dtype:
    """The dtype of the operands of the multiplication, from their common dtype."""
    if common in dtypes.narrow_int_dtypes:
        return np.dtype(np.int32)
    if platform == "cpu" and common in dtypes.narrow_float_dtypes:
        return np.dtype(np.float32)  # XLA's CPU backend would round every partial sum
    return common


@functools.cache
def dtypes_of_product(platform: str, x: np.dtype, y: np.dtype, result: np.dtype) -> tuple[np.dtype, np.dtype]:
    """The dtypes of the operands and of the accumulated sums. The sums are converted to `result` at the end."""
    common = p.product_dtype(x, y)
    if p.product_dtype(common, result) != result:  # narrower than the operands: round at the end
        result = common
    elif x != y or not _same_sort(common, result):
        common = result
    storage = _storage_dtype(platform, common)
    if storage != common:
        result = storage if p.product_dtype(storage, result) == storage else result
    return storage, result


def _is_doubled(result, sizes):
    """Whether XLA's compiler for GPUs returns twice the product (seen on an H100, with jaxlib 0.11.2).

    It does so for int8 operands with wider results, if the number of summands is not a multiple of 4.
    """
    fours = all(isinstance(n, int) for n in sizes) and math.prod(sizes) % 4 == 0
    return result != np.int8 and not fours


@functools.cache
def _numbers(dimension_numbers):
    (lc, rc), (lb, rb) = dimension_numbers
    return parse(
        f"#stablehlo.dot<lhs_batching_dimensions = {[*lb]}, rhs_batching_dimensions = {[*rb]},"
        f" lhs_contracting_dimensions = {[*lc]}, rhs_contracting_dimensions = {[*rc]}>"
    )


@lowering_rules.rule(p.dot_general_p)
def _dot_general(ctx, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    (x, y), out = ctx.avals_in, ctx.avals_out[0]
    attributes = dict(dot_dimension_numbers=_numbers(dimension_numbers), precision_config=precision_config(precision))
    if isinstance(precision, (p.DotAlgorithm, p.DotAlgorithmPreset)):
        return _with_algorithm(ctx, lhs, rhs, precision, attributes)
    platform = ctx.platform
    storage, result = dtypes_of_product(platform, x.dtype, y.dtype, out.dtype)
    if storage == np.int8 and platform in platforms.members("gpu"):
        contracted = dimension_numbers[0][0]
        if _is_doubled(result, [x.shape[d] for d in contracted]):
            storage = result
    value = ctx.emit(
        "stablehlo.dot_general",
        [
            lhs if x.dtype == storage else ctx.convert(lhs, storage),
            rhs if y.dtype == storage else ctx.convert(rhs, storage),
        ],
        ctx.tensor_type(out.shape, result),
        **attributes,
    )
    if result == out.dtype:
        return value
    if result in dtypes.complex_dtypes and out.dtype not in dtypes.complex_dtypes:
        real = np.dtype(np.float32 if result == np.complex64 else np.float64)
        value = ctx.emit("stablehlo.real", [value], ctx.tensor_type(out.shape, real))
    return ctx.convert(value, out.dtype)


def _with_algorithm(ctx, lhs, rhs, algorithm, attributes):
    (x, y), out = ctx.avals_in, ctx.avals_out[0]
    supported = not isinstance(algorithm, p.DotAlgorithmPreset) or algorithm.name in _CPU_ALGORITHMS
    if ctx.platform == "cpu" and not supported:
        raise ValueError(
            f"The precision '{algorithm}' is not supported by dot_general on CPU; supported are"
            f" {', '.join(sorted(_CPU_ALGORITHMS))} and the values of lax.Precision."
        )
    if isinstance(algorithm, p.DotAlgorithmPreset):
        stored = algorithm.supported_lhs_types
        types = [d if stored is None or d in map(np.dtype, stored) else np.dtype(stored[0]) for d in (x.dtype, y.dtype)]
        if types[0] != types[1] and stored is not None:
            types = [p.product_dtype(*types)] * 2
        outs = algorithm.supported_output_types(*types)
    else:
        types = [np.dtype(algorithm.lhs_precision_type), np.dtype(algorithm.rhs_precision_type)]
        outs = (algorithm.accumulation_type,)
    result = out.dtype if outs is None or out.dtype in map(np.dtype, outs) else np.dtype(outs[0])
    text = _algorithm_text(algorithm, *types, result)
    value = ctx.emit(
        "stablehlo.dot_general",
        [ctx.convert(lhs, types[0]), ctx.convert(rhs, types[1])],
        ctx.tensor_type(out.shape, result),
        algorithm=ctx.parse(text),
        **attributes,
    )
    return ctx.convert(value, out.dtype)
