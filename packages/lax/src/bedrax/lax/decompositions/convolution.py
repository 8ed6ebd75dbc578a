"""Convolution as a sum of matrix products, one for each position in the window. Any dtype and any number of groups are allowed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from bedrax.core import dims
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax.filling import full
from bedrax.lax.primitives.contractions import dot_general, product_dtype
from bedrax.lax.primitives.elementwise import add
from bedrax.lax.primitives.shaping import pad, reshape, transpose
from bedrax.lax.primitives.shaping import slice as strided_slice


def sum_of_products(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: Any = 1,
    batch_group_count: Any = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """`lax.conv_general_dilated` with a window of known size; the numbers of groups may be symbolic.

    Raises:
      NotImplementedError: the size of the window is symbolic.
    """
    numbers, n = dimension_numbers, len(window_strides)
    # (groups, batch, space, features), and (window, features, groups, features of results)
    x = transpose(lhs, (numbers.lhs_spec[0], *numbers.lhs_spec[2:], numbers.lhs_spec[1]))
    kernel = transpose(rhs, (*numbers.rhs_spec[2:], numbers.rhs_spec[1], numbers.rhs_spec[0]))
    batch, *space, features = aval_of(x).shape
    *window, inner, outer = aval_of(kernel).shape
    if not dims.is_constant_shape(window):
        raise NotImplementedError(
            f"convolution with a window of symbolic size {tuple(window)}: the size of the window must be known while"
            " converting; make the spatial dimensions of the kernel constant"
        )
    if dims.definitely_equal(batch_group_count, 1):
        groups = feature_group_count
        x = transpose(reshape(x, (batch, *space, groups, inner)), (n + 1, *range(n + 1), n + 2))
    else:
        groups = batch_group_count
        batch = batch // groups
        x = reshape(x, (groups, batch, *space, features))
    kernel = reshape(kernel, (*window, inner, groups, outer // groups))
    edges = [(lo, hi, d - 1) for (lo, hi), d in zip(padding, lhs_dilation, strict=True)]
    x = pad(x, np.zeros((), aval_of(x).dtype), ((0, 0, 0), (0, 0, 0), *edges, (0, 0, 0)))
    spans = [dims.dilate_dim(k, d) for k, d in zip(window, rhs_dilation, strict=True)]
    sizes = aval_of(x).shape[2:-1]
    places = [dims.stride_dim(m, k, s) for m, k, s in zip(sizes, spans, window_strides, strict=True)]
    total = None
    for offset in itertools.product(*map(range, window)):
        # Without places, the input may end before the offset.
        starts = [o * d if m else 0 for o, d, m in zip(offset, rhs_dilation, places, strict=True)]
        ends = [a + dims.non_negative((m - 1) * s + 1) for a, m, s in zip(starts, places, window_strides, strict=True)]
        cut = strided_slice(x, (0, 0, *starts, 0), (groups, batch, *ends, inner), (1, 1, *window_strides, 1))
        columns = strided_slice(kernel, (*offset, 0, 0, 0), (*[o + 1 for o in offset], inner, groups, outer // groups))
        product = dot_general(
            cut,
            reshape(columns, (inner, groups, outer // groups)),
            (((n + 2,), (0,)), ((0,), (1,))),
            precision,
            preferred_element_type,
        )
        total = product if total is None else add(total, product)
    if total is None:  # the window has no elements
        dtype = preferred_element_type or product_dtype(aval_of(lhs).dtype, aval_of(rhs).dtype)
        total = full((groups, batch, *places, outer // groups), 0, dtype)
    out = reshape(transpose(total, (*range(1, n + 2), 0, n + 2)), (batch, *places, outer))
    spec = numbers.out_spec
    place = {spec[0]: 0, spec[1]: n + 1, **{d: i + 1 for i, d in enumerate(spec[2:])}}
    return transpose(out, tuple([place[d] for d in range(n + 2)]))
