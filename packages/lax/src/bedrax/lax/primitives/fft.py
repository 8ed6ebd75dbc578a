"""Discrete Fourier transforms over the last dimensions of an array."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Final

import numpy as np

from bedrax.core import dims, dtypes, errors
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import conversions

pure_shapes.add(__name__)

__all__ = ["FftType", "fft", "fft_p"]

fft_p: Final = Primitive("fft", "fft")


class FftType(enum.IntEnum):
    """The kind of transform: forward or inverse, of complex or (``RFFT``, ``IRFFT``) of real arrays.

    Examples:

      >>> lax.fft(jnp.array([1. + 0j, 0., -1., 0.]), lax.FftType.FFT, (4,))
      Array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


@fft_p.abstract
def _fft_shape(x, *, fft_type, fft_lengths):
    name, k = FftType(fft_type).name, len(fft_lengths)
    if k > x.ndim:
        raise ValueError(f"{name}: fft_lengths {fft_lengths} are more than the axes of shape {x.shape}")
    lead, minor = x.shape[: x.ndim - k], x.shape[x.ndim - k :]
    real = x.dtype in (np.float32, np.float64)
    if fft_type == FftType.RFFT and not real:
        raise ValueError(f"{name} takes float32 or float64, got {x.dtype}")
    if fft_type != FftType.RFFT and x.dtype not in dtypes.complex_dtypes:
        raise ValueError(f"{name} takes complex64 or complex128, got {x.dtype}")
    expected = fft_lengths
    if fft_type == FftType.IRFFT and k:
        expected = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    if not dims.definitely_equal_shape(minor, expected):
        raise ValueError(f"{name}: axes of {x.shape} must have the lengths {expected} for fft_lengths {fft_lengths}")
    if fft_type == FftType.RFFT:
        out = (*lead, *fft_lengths[:-1], fft_lengths[-1] // 2 + 1) if k else lead
        return ShapedArray(out, dtypes.to_complex_dtype(x.dtype))
    if fft_type == FftType.IRFFT:
        return ShapedArray((*lead, *fft_lengths), dtypes.to_real_dtype(x.dtype))
    return x


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Discrete Fourier transform over the last ``len(fft_lengths)`` dimensions.

    ``FFT`` is ``y[k] = sum_n x[n] exp(-2 pi i k n / N)`` in each of them, ``IFFT`` its inverse (divided by the
    number of elements). ``RFFT`` takes a real array and returns the first ``N // 2 + 1`` elements in the last
    dimension, which determine the others; ``IRFFT`` is its inverse.

    Args:
      x: an array; other dtypes are converted to a float or complex dtype.
      fft_type: an `FftType` or its name.
      fft_lengths: the lengths of the transformed dimensions; for ``IRFFT``, of the result.

    Returns:
      A complex array; for ``IRFFT`` a real one.

    Raises:
      TypeError: `fft_lengths` are no integers.
      ValueError: a complex array is given to ``RFFT``, or lengths are negative or do not fit the shape.

    Examples:

      >>> lax.fft(jnp.array([1., 0., -1., 0.]), "rfft", (4,))
      Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        kind = FftType.__members__.get(fft_type.upper())
        if kind is None:
            raise ValueError(f"fft: no kind is named {fft_type!r}; there are {', '.join(FftType.__members__)}")
    elif isinstance(fft_type, FftType):
        kind = fft_type
    else:
        raise TypeError(f"fft: the kind is a string or an FftType, got {fft_type!r}")
    try:
        lengths = tuple([n if dims.is_symbolic(n) else operator.index(n) for n in fft_lengths])
    except errors.JAXTypeError:  # a traced length
        raise
    except TypeError:
        raise TypeError(f"fft: fft_lengths is a sequence of integers, got {fft_lengths!r}") from None
    if any(type(n) is int and n < 0 for n in lengths):
        raise ValueError(f"fft: fft_lengths are not negative, got {lengths}")
    dtype = aval_of(x).dtype
    if kind == FftType.RFFT:
        if dtypes.issubdtype(dtype, np.complexfloating):
            raise ValueError(f"fft: RFFT takes real numbers, got {dtype}; take the real part, or use FFT")
        x = conversions.convert_element_type(x, dtypes.to_inexact_dtype(dtype))
    else:
        x = conversions.convert_element_type(x, dtypes.to_complex_dtype(dtype))
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths) if lengths else x
