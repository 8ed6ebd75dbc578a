"""Batching of convolutions: a mapped axis joins the batch, the output features, or the groups."""

from __future__ import annotations

from bedrax.batching.tables import batch_rules
from bedrax.core.avals import aval_of
from bedrax.core.tables import shape_rules
from bedrax.lax.axes import cut_axis, merge_axes, move_axis
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives.convolution import conv_general_dilated_p


def _merge(x, mapped: int, into: int, major: bool):
    """Fold the mapped axis into dimension `into` of the example, as its slower or its faster part."""
    return merge_axes(move_axis(x, mapped, into if major else into + 1), into)


def _of_no_examples(args, dims, params: dict):
    cut = lambda a, d: a if d is None else a.update(shape=a.shape[:d] + a.shape[d + 1 :])
    types = [cut(aval_of(x), d) for x, d in zip(args, dims, strict=True)]
    kind = shape_rules[conv_general_dilated_p](*types, **params)
    return zeros_of(kind.update(shape=(0, *kind.shape)))


@batch_rules.rule(conv_general_dilated_p)
def _conv(axis, args, dims, *, dimension_numbers, feature_group_count, batch_group_count, **params):
    (x, kernel), (xd, kd) = args, dims
    lhs, rhs, out = dimension_numbers
    groups = dict(feature_group_count=feature_group_count, batch_group_count=batch_group_count)
    if axis.size == 0:  # it makes no number of groups
        return _of_no_examples(args, dims, dict(dimension_numbers=dimension_numbers, **groups, **params)), 0
    # If the axis is the faster part of a dimension, the groups of that dimension stay contiguous.
    if kd is None:
        x, merged, major = _merge(x, xd, lhs[0], False), out[0], False
    elif xd is None:
        kernel, merged, major = _merge(kernel, kd, rhs[0], False), out[1], False
    else:  # every example is a group, or a group of groups
        kernel = _merge(kernel, kd, rhs[0], True)
        if batch_group_count > 1:
            x = _merge(x, xd, lhs[0], True)
            groups["batch_group_count"] = batch_group_count * axis.size
        else:
            x = _merge(x, xd, lhs[1], True)
            groups["feature_group_count"] = feature_group_count * axis.size
        merged, major = out[1], True
    result = conv_general_dilated_p.bind(x, kernel, dimension_numbers=dimension_numbers, **groups, **params)
    if major:
        return cut_axis(result, merged, axis.size), merged
    return cut_axis(result, merged, None, axis.size), merged + 1
