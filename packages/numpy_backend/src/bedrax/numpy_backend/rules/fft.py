"""NumPy evaluation of Fourier transforms: `numpy.fft`, in the precision of the operand."""

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives.fft import FftType, fft_p
from bedrax.numpy_backend.tables import numpy_rules


@numpy_rules.rule(fft_p)
def _fft(x, *, fft_type, fft_lengths):
    k = len(fft_lengths)
    kind = FftType(fft_type)
    dtype = x.dtype
    if kind == FftType.RFFT:
        dtype = dtypes.to_complex_dtype(dtype)
    elif kind == FftType.IRFFT:
        dtype = dtypes.to_real_dtype(dtype)
    if not x.size or 0 in fft_lengths:
        shape = (*x.shape[: x.ndim - k], *fft_lengths)
        if kind == FftType.RFFT:
            shape = (*shape[:-1], shape[-1] // 2 + 1)
        return np.zeros(shape, dtype)
    function = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind.name]
    return function(x, s=fft_lengths, axes=tuple(range(x.ndim - k, x.ndim))).astype(dtype, copy=False)
