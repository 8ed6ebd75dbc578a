"""StableHLO of convolutions."""

from __future__ import annotations

import numpy as np

from bedrax.core import dtypes
from bedrax.core.primitives.contractions import DotAlgorithm, DotAlgorithmPreset, product_dtype
from bedrax.core.primitives.convolution import conv_general_dilated_p
from bedrax.xla_backend.lowering.contractions import precision_config, same_sort, storage_dtype
from bedrax.xla_backend.tables import lowering_rules


def _numbers_text(numbers) -> str:
    parts = []
    for side, (first, second), spec in zip(
        ("input", "kernel", "output"), (("batch", "feature"), ("output_feature", "input_feature"), ("batch", "feature")),
        numbers, strict=True,
    ):  # fmt: skip
        parts += [
            f"{side}_{first}_dimension = {spec[0]}", f"{side}_{second}_dimension = {spec[1]}",
            f"{side}_spatial_dimensions = {[*spec[2:]]}",
        ]  # fmt: skip
    return f"#stablehlo.conv<raw {', '.join(parts)}>"


@lowering_rules.rule(conv_general_dilated_p)
def _conv(
    ctx, lhs, rhs, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count=1,
    batch_group_count=1, precision=None, preferred_element_type=None, out_sharding=None,
):  # fmt: skip
    (x, k), out = ctx.avals_in, ctx.avals_out[0]
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        raise ValueError(
            f"conv_general_dilated does not accept the dot algorithm {precision!r} as its precision; use lax.Precision."
        )
    attributes = dict(
        window_strides=window_strides, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
        dimension_numbers=ctx.parse(_numbers_text(dimension_numbers)), feature_group_count=feature_group_count,
        batch_group_count=batch_group_count, precision_config=precision_config(ctx, precision),
    )  # fmt: skip
    static = all(isinstance(p, int) for pair in padding for p in pair)

    def convolve(a, b, dtype):
        result = ctx.tensor_type(out.shape, dtype)
        if static:
            pads = np.array(padding, np.int64).reshape(len(padding), 2)
            return ctx.emit("stablehlo.convolution", [a, b], result, padding=pads, **attributes)
        pads = ctx.reshape(ctx.shape_tensor([p for pair in padding for p in pair]), (len(padding), 2))
        return ctx.emit("stablehlo.dynamic_conv", [a, b, pads], result, **attributes)

    common = product_dtype(x.dtype, k.dtype)
    result = out.dtype
    if common in dtypes.complex_dtypes:
        return _complex(ctx, lhs, rhs, common, result, convolve)
    if product_dtype(common, result) != result:
        result = common
    elif x.dtype != k.dtype or not same_sort(common, result):
        common = result
    storage = storage_dtype(ctx, common)
    if storage != common:
        result = storage if product_dtype(storage, result) == storage else result
    return ctx.convert(convolve(ctx.convert(lhs, storage), ctx.convert(rhs, storage), result), out.dtype)


def _complex(ctx, lhs, rhs, common, result, convolve):
    """A complex convolution as four real ones, which every platform has."""
    part = np.dtype(np.float32 if common == np.complex64 else np.float64)

    def parts(value, aval):
        if aval.dtype not in dtypes.complex_dtypes:
            return ctx.convert(value, part), None
        value = ctx.convert(value, common)
        kind = ctx.tensor_type(aval.shape, part)
        return ctx.emit("stablehlo.real", [value], kind), ctx.emit("stablehlo.imag", [value], kind)

    (a, b), (c, d) = parts(lhs, ctx.avals_in[0]), parts(rhs, ctx.avals_in[1])

    def product(u, v):
        return None if u is None or v is None else convolve(u, v, part)

    def combine(op, u, v):
        return u if v is None else v if u is None else ctx.binary(op, u, v)

    real = combine("stablehlo.subtract", product(a, c), product(b, d))
    imag = combine("stablehlo.add", product(a, d), product(b, c))
    shape = ctx.avals_out[0].shape
    return ctx.convert(ctx.emit("stablehlo.complex", [real, imag], ctx.tensor_type(shape, common)), result)
