"""Derivatives of convolutions, which are convolutions.

With respect to the input: the cotangent, spread by the strides, is convolved with the reversed kernel with its feature
dimensions swapped. With respect to the kernel: the input is convolved with the cotangent, with batch and feature
dimensions swapped. The pads follow from the position that a kernel element reads,
``out * stride - low + element * rhs_dilation`` in the dilated input.
"""

from __future__ import annotations

from bedrax.autodiff.rules.contractions import as_cotangent
from bedrax.autodiff.tables import bilinear
from bedrax.core import dims
from bedrax.core.avals import aval_of
from bedrax.lax.axes import cut_axis, merge_axes, move_axis
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.convolution import ConvDimensionNumbers, conv_general_dilated_p


def _spans(shape, spec, dilation) -> list:
    """The spatial sizes after dilation."""
    return [dims.dilate_dim(shape[d], k) for d, k in zip(spec[2:], dilation, strict=True)]


def _regroup(x, take: int, give: int, groups: int):
    """Move the groups that dimension `take` falls into to the front of dimension `give`."""
    if groups == 1:
        return x
    return merge_axes(move_axis(cut_axis(x, take, groups), take, give), give)


def _lhs_transpose(
    ct,
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
    aval = lhs.aval
    x_spec, k_spec, out_spec = dimension_numbers
    kernel_shape = aval_of(rhs).shape
    pads = []
    for n, k, o, (low, _) in zip(
        _spans(aval.shape, x_spec, lhs_dilation),
        _spans(kernel_shape, k_spec, rhs_dilation),
        _spans(aval_of(ct).shape, out_spec, window_strides),
        padding,
        strict=True,
    ):
        before = k - 1 - low
        pads.append((before, n + k - 1 - o - before))
    groups = feature_group_count * batch_group_count
    # Each group of output features becomes a group of input features; input features become output features.
    kernel = _regroup(rhs, k_spec[0], k_spec[1], groups)
    if k_spec[2:]:
        kernel = shaping.rev(kernel, k_spec[2:])
    out = conv_general_dilated_p.bind(
        ct,
        kernel,
        window_strides=lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out_spec, (k_spec[1], k_spec[0], *k_spec[2:]), x_spec),
        feature_group_count=groups,
        batch_group_count=1,
        precision=precision,
        preferred_element_type=None,
    )
    if batch_group_count > 1:
        out = _regroup(out, x_spec[1], x_spec[0], batch_group_count)
    return as_cotangent(out, aval)


def _rhs_transpose(
    ct,
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
    aval = rhs.aval
    x_spec, k_spec, out_spec = dimension_numbers
    pads = []
    for n, k, o, (low, _) in zip(
        _spans(aval_of(lhs).shape, x_spec, lhs_dilation),
        _spans(aval.shape, k_spec, rhs_dilation),
        _spans(aval_of(ct).shape, out_spec, window_strides),
        padding,
        strict=True,
    ):
        pads.append((low, k + o - 1 - n - low))
    swap = lambda spec: (spec[1], spec[0], *spec[2:])
    # A group of features is, with the roles swapped, a group of the batch; and the other way round.
    out = conv_general_dilated_p.bind(
        lhs,
        ct,
        window_strides=rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(swap(x_spec), swap(out_spec), swap(k_spec)),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        precision=precision,
        preferred_element_type=None,
    )
    return as_cotangent(out, aval)


bilinear(conv_general_dilated_p, _lhs_transpose, _rhs_transpose)
