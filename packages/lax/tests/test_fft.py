"""Conversions and errors of Fourier transforms, which the records do not cover."""

import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.staging import make_jaxpr

X = np.ones((2, 4), np.float32)
Z = X.astype(np.complex64)


@pytest.mark.parametrize(
    "x, kind, lengths, dtype, shape",
    [
        (X, "FFT", (4,), np.complex64, (2, 4)),
        (X.astype(np.int32), "RFFT", (4,), np.complex64, (2, 3)),
        (X, "IRFFT", (7,), np.float32, (2, 7)),
        (Z, lax.FftType.IRFFT, (6,), np.float32, (2, 6)),
        (X.astype(np.float16), "ifft", (2, 4), np.complex64, (2, 4)),
        (Z, "FFT", (), np.complex64, (2, 4)),
    ],
)
def test_types(x, kind, lengths, dtype, shape):
    (out,) = make_jaxpr(lambda: lax.fft(x, kind, lengths))().out_avals
    assert out.dtype == dtype and out.shape == shape


@pytest.mark.parametrize(
    "x, kind, lengths, error, message",
    [
        (X, "FOO", (4,), ValueError, "no kind is named 'FOO'"),
        (X, 2, (4,), TypeError, "the kind is a string or an FftType, got 2"),
        (Z, "RFFT", (4,), ValueError, "RFFT takes real numbers, got complex64"),
        (X, "RFFT", (5,), ValueError, "must have the lengths (5,) for fft_lengths (5,)"),
        (Z, "IRFFT", (4,), ValueError, "must have the lengths (3,) for fft_lengths (4,)"),
        (Z, "FFT", (1, 2, 4), ValueError, "fft_lengths (1, 2, 4) are more than the axes of shape (2, 4)"),
        (X.astype(np.float16), "RFFT", (4,), ValueError, "RFFT takes float32 or float64, got float16"),
        (X, "RFFT", 4, TypeError, "fft: fft_lengths is a sequence of integers, got 4"),
        (X, "FFT", None, TypeError, "fft: fft_lengths is a sequence of integers, got None"),
        (X, "FFT", (4.0,), TypeError, "fft: fft_lengths is a sequence of integers, got (4.0,)"),
        (X, "FFT", (-4,), ValueError, "fft: fft_lengths are not negative, got (-4,)"),
        (Z[:, :0], "IRFFT", (-2,), ValueError, "fft: fft_lengths are not negative, got (-2,)"),
    ],
)
def test_errors(x, kind, lengths, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make_jaxpr(lambda x: lax.fft(x, kind, lengths))(x)
