"""Derivatives of Fourier transforms: they are linear, and the complex ones symmetric.

`RFFT` is the full transform of a real array, restricted to half of the spectrum. `IRFFT` sums each element of
that half and, unless they are the same, its mirror image. So each is the other's transpose up to
conjugation and a weight in the last dimension: 1 for elements that are their own mirror images, else 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax.autodiff.tables import linear
from bedrax.core import dims
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import elementwise, shaping
from bedrax.lax.primitives.conversions import convert_element_type
from bedrax.lax.primitives.fft import FftType, fft_p


def _mirror_weights(shape: tuple, length: Any, own: Any, mirrored: Any, dtype) -> Any:
    """Along the last dimension of half a spectrum: `own` at frequencies 0 and length/2, else `mirrored`."""
    if dims.is_constant_shape((length, *shape[-1:])) and not hasattr(own, "aval"):
        k = np.arange(length // 2 + 1)
        weights = np.where((k == 0) | (2 * k == length), own, mirrored).astype(dtype)
        return shaping.broadcast_in_dim(weights, shape, (len(shape) - 1,))
    k = shaping.broadcasted_iota(np.dtype(np.int32), shape, len(shape) - 1)
    full = lambda x, dtype: shaping.broadcast_in_dim(convert_element_type(x, dtype), shape, ())
    twice = elementwise.add(k, k)
    alone = elementwise.bitwise_or(elementwise.eq(k, full(0, np.int32)), elementwise.eq(twice, full(length, np.int32)))
    return elementwise.select(alone, full(own, dtype), full(mirrored, dtype))


def _fft_transpose(ct, x, *, fft_type, fft_lengths):
    aval = aval_of(ct)
    count = math.prod(fft_lengths)
    if fft_type == FftType.RFFT:
        weights = _mirror_weights(aval.shape, fft_lengths[-1], count, count / 2, aval.dtype)
        half = elementwise.mul(elementwise.conj(ct), weights)
        return [fft_p.bind(half, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)]
    if fft_type == FftType.IRFFT:
        half = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        spectrum = aval_of(half)
        weights = _mirror_weights(spectrum.shape, fft_lengths[-1], 1 / count, 2 / count, spectrum.dtype)
        return [elementwise.mul(elementwise.conj(half), weights)]
    return [fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)]


linear(fft_p, _fft_transpose)
