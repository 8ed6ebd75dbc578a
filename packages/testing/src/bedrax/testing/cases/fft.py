"""Records of Fourier transforms."""

import numpy as np

from bedrax.lax.primitives.fft import FftType, fft, fft_p
from bedrax.testing.records import OpCase, arg


def _sums(x, n, sign):
    """The definition, along the last dimension."""
    k = np.arange(n)
    return x @ np.exp(sign * 2j * np.pi * np.outer(k, k) / n)


CASES = [
    OpCase(fft_p, "fft", lambda x: fft(x, FftType.FFT, (5,)), (arg((2, 5), "complex64"),), oracle=lambda x: _sums(x, 5, -1)),
    OpCase(fft_p, "ifft", lambda x: fft(x, "IFFT", (4,)), (arg((4,), "complex128"),), oracle=lambda x: _sums(x, 4, 1) / 4),
    OpCase(fft_p, "fft2", lambda x: fft(x, "fft", (3, 2)), (arg((2, 3, 2), "complex64"),), oracle=lambda x: np.fft.fft2(x)),
    OpCase(fft_p, "rfft_even", lambda x: fft(x, "RFFT", (6,)), (arg((2, 6)),), oracle=lambda x: _sums(x, 6, -1)[:, :4]),
    OpCase(fft_p, "rfft_odd", lambda x: fft(x, "RFFT", (5,)), (arg((5,), "float64"),), oracle=lambda x: _sums(x, 5, -1)[:3]),
    OpCase(fft_p, "rfft3", lambda x: fft(x, "RFFT", (2, 3, 4)), (arg((2, 2, 3, 4)),), oracle=lambda x: np.fft.rfftn(x, axes=(1, 2, 3))),
    OpCase(fft_p, "irfft_even", lambda x: fft(x, "IRFFT", (6,)), (arg((2, 4), "complex64"),), oracle=lambda x: np.fft.irfft(x, 6)),
    OpCase(fft_p, "irfft2_odd", lambda x: fft(x, "IRFFT", (3, 5)), (arg((2, 3, 3), "complex64"),),
           oracle=lambda x: np.fft.irfft2(x, (3, 5))),
    OpCase(fft_p, "four_dimensions", lambda x: fft(x, "IRFFT", (2, 3, 2, 4)), (arg((2, 3, 2, 3), "complex64"),),
           oracle=lambda x: np.fft.irfftn(x, (2, 3, 2, 4), axes=(0, 1, 2, 3))),
    OpCase(fft_p, "four_dimensions_rfft", lambda x: fft(x, "RFFT", (2, 3, 2, 4)), (arg((1, 2, 3, 2, 4)),),
           oracle=lambda x: np.fft.rfftn(x, axes=(1, 2, 3, 4))),
    OpCase(fft_p, "empty", lambda x: fft(x, "FFT", (4,)), (arg((0, 4), "complex64"),)),
]  # fmt: skip
