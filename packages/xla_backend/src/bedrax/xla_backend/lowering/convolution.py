"""StableHLO of convolutions."""

from __future__ import annotations

import math

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.lax.decompositions.convolution import sum_of_products
from bedrax.lax.primitives.contractions import DotAlgorithm, DotAlgorithmPreset, product_dtype
from bedrax.lax.primitives.convolution import conv_general_dilated_p
from bedrax.xla_backend.lowering.contractions import dtypes_of_product, precision_config
from bedrax.xla_backend.tables import lowering_rules, platform_rule


def _numbers_text(numbers) -> str:
    parts = []
    for side, (first, second), spec in zip(
        ("input", "kernel", "output"),
        (("batch", "feature"), ("output_feature", "input_feature"), ("batch", "feature")),
        numbers,
        strict=True,
    ):
        parts += [
            f"{side}_{first}_dimension = {spec[0]}",
            f"{side}_{second}_dimension = {spec[1]}",
            f"{side}_spatial_dimensions = {[*spec[2:]]}",
        ]
    return f"#stablehlo.conv<raw {', '.join(parts)}>"


@lowering_rules.rule(conv_general_dilated_p)
def _conv(
    ctx,
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
):
    (x, k), out = ctx.avals_in, ctx.avals_out[0]
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        raise ValueError(
            f"conv_general_dilated does not accept the dot algorithm {precision!r} as its precision; use lax.Precision."
        )
    if any(type(k.shape[d]) is int and k.shape[d] == 0 for d in dimension_numbers.rhs_spec[2:]):
        return ctx.full(out.shape, 0, out.dtype)  # empty sums; StableHLO has no windows without elements
    if not ctx.is_static((feature_group_count, batch_group_count)):  # attributes of StableHLO's operation
        params = dict(
            window_strides=window_strides,
            padding=padding,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            dimension_numbers=dimension_numbers,
            feature_group_count=feature_group_count,
            batch_group_count=batch_group_count,
            precision=precision,
            preferred_element_type=out.dtype,
        )
        return ctx.lower_fun(sum_of_products, lhs, rhs, **params)
    attributes = dict(
        window_strides=window_strides,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ctx.parse(_numbers_text(dimension_numbers)),
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision_config=precision_config(precision),
    )
    static = all(isinstance(p, int) for pair in padding for p in pair)

    def convolve(a, b, dtype):
        result = ctx.tensor_type(out.shape, dtype)
        if static:
            pads = np.array(padding, np.int64).reshape(len(padding), 2)
            return ctx.emit("stablehlo.convolution", [a, b], result, padding=pads, **attributes)
        pads = ctx.reshape(ctx.shape_tensor([p for pair in padding for p in pair]), (len(padding), 2))
        return ctx.emit("stablehlo.dynamic_conv", [a, b, pads], result, **attributes)

    common = product_dtype(x.dtype, k.dtype)
    if common in dtypes.complex_dtypes:
        return _complex(ctx, lhs, rhs, common, out.dtype, convolve)
    storage, result = dtypes_of_product(ctx.platform, x.dtype, k.dtype, out.dtype)
    return ctx.convert(convolve(ctx.convert(lhs, storage), ctx.convert(rhs, storage), result), out.dtype)


@platform_rule(conv_general_dilated_p, "gpu")
def _conv_gpu(ctx, lhs, rhs, **params):
    """Integers by matrix products: cuDNN has convolutions of int8 only, whose results saturate instead of wrapping."""
    if not dtypes.is_integer(product_dtype(*[aval.dtype for aval in ctx.avals_in])):
        return _conv(ctx, lhs, rhs, **params)
    return ctx.lower_fun(sum_of_products, lhs, rhs, **{**params, "preferred_element_type": ctx.avals_out[0].dtype})


def _complex(ctx, lhs, rhs, common, result, convolve):
    """A complex convolution as four real ones, which every platform supports."""
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


# Groups on the CPU. XLA computes ungrouped convolutions with Eigen, but many grouped ones by a loop over
# elements, which is 10 to 400 times slower than the rules below.

_MANY_TAPS = 49  # above this, a depthwise convolution is not unrolled over the elements of the kernel
_MANY_GROUPS = 32  # above this, groups are a loop


@platform_rule(conv_general_dilated_p, "cpu")
def _conv_cpu(ctx, lhs, rhs, **params):
    groups = params["feature_group_count"] * params["batch_group_count"]
    (x, k), out = ctx.avals_in, ctx.avals_out[0]
    static = all(ctx.is_static(a.shape) for a in (x, k, out))
    if groups == 1 or not static or 0 in (*x.shape, *k.shape, *out.shape):
        return _conv(ctx, lhs, rhs, **params)
    numbers, kernel = params["dimension_numbers"], [k.shape[d] for d in params["dimension_numbers"].rhs_spec]
    if params["feature_group_count"] > 1 and kernel[1] == 1:
        if math.prod(kernel[2:]) > _MANY_TAPS:
            return _conv(ctx, lhs, rhs, **params)
        return ctx.lower_fun(_depthwise, lhs, rhs, **params)
    if params["batch_group_count"] == x.shape[numbers.lhs_spec[0]] == kernel[0]:
        return _conv(ctx, lhs, rhs, **params)  # XLA recognizes the transposed depthwise convolution, and is fast
    return ctx.lower_fun(_by_groups, lhs, rhs, **params)


def _depthwise(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
    preferred_element_type,
):
    """The sum of one product per element of the kernel. XLA fuses it into one loop over the result."""
    numbers, n = dimension_numbers, len(window_strides)
    given = product_dtype(aval_of(lhs).dtype, aval_of(rhs).dtype)
    result = preferred_element_type or given
    dtype = product_dtype(given, result)
    if dtype in dtypes.float_dtypes and dtypes.itemsize_bits(dtype) < 32:
        dtype = np.dtype(np.float32)
    x = lax.convert_element_type(
        lax.transpose(lhs, (numbers.lhs_spec[0], *numbers.lhs_spec[2:], numbers.lhs_spec[1])), dtype
    )
    k = lax.convert_element_type(
        lax.transpose(rhs, (*numbers.rhs_spec[2:], numbers.rhs_spec[1], numbers.rhs_spec[0])), dtype
    )
    config = ((0, 0, 0), *[(lo, hi, d - 1) for (lo, hi), d in zip(padding, lhs_dilation, strict=True)], (0, 0, 0))
    x = lax.pad(x, dtype.type(0), config)
    (batch, *space, features), (*window, _, outs) = aval_of(x).shape, aval_of(k).shape
    places = [
        (m - ((w - 1) * d + 1)) // s + 1 for m, w, d, s in zip(space, window, rhs_dilation, window_strides, strict=True)
    ]
    shape = (batch, *places, features, outs // features)
    total = None
    for tap in np.ndindex(*window):
        first = [t * d for t, d in zip(tap, rhs_dilation, strict=True)]
        last = [f + (p - 1) * s + 1 for f, p, s in zip(first, places, window_strides, strict=True)]
        part = lax.slice(x, (0, *first, 0), (batch, *last, features), (1, *window_strides, 1))
        weight = lax.slice(k, (*tap, 0, 0), (*[t + 1 for t in tap], 1, outs))
        weight = lax.broadcast_in_dim(lax.reshape(weight, shape[-2:]), shape, (n + 1, n + 2))
        term = lax.mul(lax.broadcast_in_dim(part, shape, tuple(range(n + 2))), weight)
        total = term if total is None else lax.add(total, term)
    out = lax.convert_element_type(lax.reshape(total, (batch, *places, outs)), result)
    order = (numbers.out_spec[0], *numbers.out_spec[2:], numbers.out_spec[1])
    return lax.transpose(out, tuple(sorted(range(n + 2), key=order.__getitem__)))


def _by_groups(lhs, rhs, *, dimension_numbers, feature_group_count, batch_group_count, **params):
    """One ungrouped convolution per group, joined along the features."""
    groups = feature_group_count * batch_group_count
    at = dimension_numbers.lhs_spec[1 if feature_group_count > 1 else 0]
    to, joined = dimension_numbers.rhs_spec[0], dimension_numbers.out_spec[1]

    def one(x, k):
        return conv_general_dilated_p.bind(
            x, k, dimension_numbers=dimension_numbers, feature_group_count=1, batch_group_count=1, **params
        )

    if groups <= _MANY_GROUPS:
        xs, ks = (lax.split(v, (aval_of(v).shape[d] // groups,) * groups, d) for v, d in ((lhs, at), (rhs, to)))
        return lax.concatenate([one(x, k) for x, k in zip(xs, ks, strict=True)], joined)

    def stacked(v, d):
        shape = aval_of(v).shape
        v = lax.reshape(v, (*shape[:d], groups, shape[d] // groups, *shape[d + 1 :]))
        return lax.transpose(v, (d, *[i for i in range(len(shape) + 1) if i != d]))

    out = lax.map(lambda pair: one(*pair), (stacked(lhs, at), stacked(rhs, to)))
    rank = len(aval_of(out).shape)
    out = lax.transpose(out, (*range(1, joined + 1), 0, *range(joined + 1, rank)))
    shape = aval_of(out).shape
    return lax.reshape(out, (*shape[:joined], shape[joined] * shape[joined + 1], *shape[joined + 2 :]))
