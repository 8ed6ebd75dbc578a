"""TensorFlow for convolution.

Floats in one to three dimensions are TensorFlow's own convolutions, in the layout (batch, space, features), which
every runtime supports. Others (integers, complex numbers, more dimensions) are a sum of matrix products, one for
each position in the window.
"""

from __future__ import annotations

from bedrax.core import dims
from bedrax.jax2tf.carriers import cast, storage
from bedrax.jax2tf.lowering.contractions import prepare_product
from bedrax.jax2tf.lowering.shaping import pad, reshape
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import transpose
from bedrax.lax.decompositions.convolution import sum_of_products
from bedrax.lax.primitives.convolution import conv_general_dilated_p
from bedrax.lax.primitives.windows import padtype_to_pads
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


@tf_rules.rule(conv_general_dilated_p)
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
    numbers, n = dimension_numbers, len(window_strides)
    a, b = ctx.avals_in
    out_aval = ctx.aval_out
    if any(dims.is_constant_dim(d) and d == 0 for d in (*a.shape, *b.shape, *out_aval.shape)):
        return tf.zeros(ctx.shape(out_aval.shape), types.tf_dtype(out_aval.dtype))
    # (batch, space, features) and (space, features in, features out)
    x_order = [numbers.lhs_spec[0], *numbers.lhs_spec[2:], numbers.lhs_spec[1]]
    k_order = [*numbers.rhs_spec[2:], numbers.rhs_spec[1], numbers.rhs_spec[0]]
    # TensorFlow does not transpose narrow dtypes.
    x, kernel = (transpose(cast(v, storage(v.dtype)), order) for v, order in ((lhs, x_order), (rhs, k_order)))
    x_shape, k_shape = [a.shape[d] for d in x_order], [b.shape[d] for d in k_order]
    x, kernel, finish = prepare_product(x, kernel, (a.dtype, b.dtype), out_aval.dtype, precision)
    known = dims.is_constant_shape((feature_group_count, batch_group_count))
    if (
        not known
        or n not in (1, 2, 3)
        or (n == 3 and (feature_group_count, batch_group_count) != (1, 1))
        or not x.dtype.is_floating
    ):
        params = dict(
            window_strides=window_strides,
            padding=padding,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            dimension_numbers=dimension_numbers,
            feature_group_count=feature_group_count,
            batch_group_count=batch_group_count,
            precision=precision,
            preferred_element_type=out_aval.dtype,
        )
        return ctx.in_place(sum_of_products, [lhs, rhs], params)
    groups = feature_group_count
    if batch_group_count > 1:
        # Groups of the batch become groups of features.
        groups = batch_group_count
        part = x_shape[0] // groups
        x = reshape(ctx, x, [groups, part, *x_shape[1:]])
        x = transpose(x, [1, *range(2, n + 2), 0, n + 2])
        x_shape = [part, *x_shape[1:-1], groups * x_shape[-1]]
        x = reshape(ctx, x, x_shape)
    spec = numbers.out_spec
    out_shape = [out_aval.shape[spec[0]], *[out_aval.shape[d] for d in spec[2:]], out_aval.shape[spec[1]]]
    out = finish(
        _tensorflow_conv(
            ctx,
            x,
            kernel,
            x_shape,
            k_shape,
            out_shape,
            groups,
            strides=tuple(window_strides),
            padding=padding,
            lhs_dilation=tuple(lhs_dilation),
            rhs_dilation=tuple(rhs_dilation),
        )
    )
    place = {spec[0]: 0, spec[1]: n + 1, **{d: i + 1 for i, d in enumerate(spec[2:])}}
    return transpose(out, [place[d] for d in range(n + 2)])


def _tensorflow_conv(
    ctx, x, kernel, x_shape, k_shape, out_shape, groups, *, strides, padding, lhs_dilation, rhs_dilation
):
    n = len(strides)
    if n == 1:  # the second dimension has one element
        x, kernel = tf.expand_dims(x, 1), tf.expand_dims(kernel, 0)
        out = _tensorflow_conv(
            ctx,
            x,
            kernel,
            [x_shape[0], 1, *x_shape[1:]],
            [1, *k_shape],
            [out_shape[0], 1, *out_shape[1:]],
            groups,
            # Some kernels need equal strides; along one element every stride is right.
            strides=strides * 2,
            padding=((0, 0), *padding),
            lhs_dilation=(1, *lhs_dilation),
            rhs_dilation=(1, *rhs_dilation),
        )
        return tf.squeeze(out, [1])
    spans = [dims.dilate_dim(k, d) for k, d in zip(k_shape[:n], rhs_dilation, strict=True)]
    ones = (1,) * n
    if n == 2 and groups == 1 and lhs_dilation != ones and strides == ones and rhs_dilation == ones:
        return _transposed(ctx, x, kernel, x_shape, k_shape, padding, lhs_dilation)
    zero = tf.zeros([], x.dtype)
    around = [(0, 0)] * (n + 2)
    if lhs_dilation != ones:
        config = [(0, 0, d - 1) for d in (1, *lhs_dilation, 1)]
        x = pad(ctx, x, zero, config)
    sizes = [dims.dilate_dim(m, d) for m, d in zip(x_shape[1 : n + 1], lhs_dilation, strict=True)]
    name = _named_padding(sizes, spans, strides, padding)
    if name is None:
        around[1 : n + 1] = [tuple(p) for p in padding]
        x, name = pad(ctx, x, zero, [(lo, hi, 0) for lo, hi in around]), "VALID"
    steps, dilations = [1, *strides, 1], [1, *rhs_dilation, 1]
    if n == 3:
        return tf.nn.conv3d(x, kernel, steps, name, dilations=dilations)
    channels = x_shape[-1]
    depthwise = groups > 1 and dims.is_constant_dim(channels) and groups == channels
    if depthwise and strides[0] == strides[1] and (rhs_dilation == ones or strides == ones):
        kernel = reshape(ctx, kernel, [*k_shape[:2], channels, k_shape[-1] // channels])
        return tf.nn.depthwise_conv2d(x, kernel, steps, name, dilations=list(rhs_dilation))
    return tf.nn.conv2d(x, kernel, steps, name, dilations=dilations)


def _named_padding(sizes, spans, strides, padding) -> str | None:
    """TensorFlow's name of a padding, or None."""
    for name in ("VALID", "SAME"):
        try:
            pads = padtype_to_pads(sizes, spans, strides, name)
        except dims.InconclusiveDimensionOperation:
            continue
        if all(dims.definitely_equal_shape(p, q) for p, q in zip(pads, padding, strict=True)):
            return name
    return None


def _transposed(ctx, x, kernel, x_shape, k_shape, padding, lhs_dilation):
    """A convolution of an operand with holes: TensorFlow's transposed convolution, and a crop."""
    kernel = tf.transpose(tf.reverse(kernel, [0, 1]), [0, 1, 3, 2])
    full = [(m - 1) * s + k for m, s, k in zip(x_shape[1:3], lhs_dilation, k_shape[:2], strict=True)]
    shape = ctx.shape([x_shape[0], *full, k_shape[3]])
    out = tf.nn.conv2d_transpose(x, kernel, shape, [1, *lhs_dilation, 1], "VALID")
    crop = [(lo - (k - 1), hi - (k - 1), 0) for (lo, hi), k in zip(padding, k_shape[:2], strict=True)]
    return pad(ctx, out, tf.zeros([], out.dtype), [(0, 0, 0), *crop, (0, 0, 0)])
