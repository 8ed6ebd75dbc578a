"""NumPy evaluation of convolutions: a view of all windows, and one stack of matrix products over it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax.lax.primitives.contractions import product_dtype
from bedrax.lax.primitives.convolution import conv_general_dilated_p
from bedrax.numpy_backend.rules.contractions import multiply_with
from bedrax.numpy_backend.tables import numpy_rules


def dilate_and_pad(x: np.ndarray, dilation: tuple[int, ...], padding: tuple[tuple[Any, ...], ...]) -> np.ndarray:
    """Return `x` with zeros between and around elements of its spatial dimensions (from 2 on); negative pads cut."""
    sizes = [max((n - 1) * d + 1, 0) if n else 0 for n, d in zip(x.shape[2:], dilation, strict=True)]
    shape = [max(n + lo + hi, 0) for n, (lo, hi) in zip(sizes, padding, strict=True)]
    out = np.zeros((*x.shape[:2], *shape), x.dtype)
    source, target = [], []
    for n, d, (lo, _), length in zip(x.shape[2:], dilation, padding, shape, strict=True):
        first = max(0, -(lo // d)) if lo < 0 else 0  # the first element that is not cut off
        last = min(n, (length - 1 - lo) // d + 1) if length else 0
        if first >= last:
            return out
        source.append(slice(first, last))
        target.append(slice(lo + first * d, lo + (last - 1) * d + 1, d))
    out[(..., *target)] = x[(..., *source)]
    return out


@numpy_rules.rule(conv_general_dilated_p)
def _conv(
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
    x = dilate_and_pad(lhs.transpose(numbers.lhs_spec), lhs_dilation, padding)
    kernel = rhs.transpose(numbers.rhs_spec)
    spans = [(k - 1) * d + 1 if k else 0 for k, d in zip(kernel.shape[2:], rhs_dilation, strict=True)]
    places = [max((m - k) // s + 1, 0) for m, k, s in zip(x.shape[2:], spans, window_strides, strict=True)]
    strides = x.strides[2:]
    windows = (
        np.lib.stride_tricks.as_strided(
            x.view(f"V{x.itemsize}"),  # NumPy makes no views of types that are not its own
            (*x.shape[:2], *places, *kernel.shape[2:]),
            (
                *x.strides[:2],
                *[a * s for a, s in zip(strides, window_strides, strict=True)],
                *[a * d for a, d in zip(strides, rhs_dilation, strict=True)],
            ),
            writeable=False,
        ).view(x.dtype)
        if math.prod(places) and kernel.size
        else np.zeros((*x.shape[:2], *places, *kernel.shape[2:]), x.dtype)
    )
    # Groups of features or of the batch, in front; then batch and places, then features and the window.
    batch, features, groups = x.shape[0], x.shape[1], feature_group_count * batch_group_count
    out_features = kernel.shape[0]
    windows = windows.reshape(
        batch_group_count,
        batch // batch_group_count,
        feature_group_count,
        features // feature_group_count,
        *windows.shape[2:],
    )
    windows = windows.transpose(0, 2, 1, *range(4, 4 + n), 3, *range(4 + n, 4 + 2 * n))
    rows = batch // batch_group_count * math.prod(places)
    windows = windows.reshape(groups, rows, math.prod(kernel.shape[1:]))
    kernel = kernel.reshape(groups, out_features // groups, math.prod(kernel.shape[1:])).transpose(0, 2, 1)
    dtype = preferred_element_type or product_dtype(lhs.dtype, rhs.dtype)
    out = multiply_with(windows, kernel, dtype, precision)
    out = out.reshape(groups, batch // batch_group_count, *places, out_features // groups)
    out = out.transpose(1, 0, n + 2, *range(2, n + 2)).reshape(batch // batch_group_count, out_features, *places)
    return out.transpose([numbers.out_spec.index(d) for d in range(n + 2)])
