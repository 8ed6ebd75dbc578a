"""`jax.scipy.signal`: convolution, trends, spectra."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import aligned, axes_tuple, axis_index, inexact

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]


# ---- convolution ----------------------------------------------------------------------------------------


def _check_mode(name: str, mode: str) -> None:
    one_of(name, "mode", mode, ("full", "same", "valid"))


def _window_of_mode(full: Array, n1: tuple, n2: tuple, mode: str, axes: Sequence[int], later: int = 1) -> Array:
    """The part of a full convolution that `mode` selects; `later` = 0 centers even sizes one element on."""
    if mode == "full":
        return full
    index = [slice(None)] * full.ndim
    for a in axes:
        if mode == "same":
            start, size = (n2[a] - later) // 2, n1[a]
        else:
            start, size = min(n1[a], n2[a]) - 1, max(n1[a], n2[a]) - min(n1[a], n2[a]) + 1
        index[a] = slice(start, start + size)
    return full[tuple(index)]


def _check_valid(in1: Array, in2: Array, mode: str, axes: Sequence[int]) -> None:
    if mode == "valid":
        first = all(in1.shape[a] >= in2.shape[a] for a in axes)
        second = all(in2.shape[a] >= in1.shape[a] for a in axes)
        if not (first or second):
            raise ValueError(f"mode='valid': one input fits into the other, got shapes {in1.shape} and {in2.shape}")


def _direct(in1: Array, in2: Array, mode: str, precision, later: int) -> Array:
    axes = range(in1.ndim)
    flipped = jnp.flip(in2)
    out = lax.conv_general_dilated(
        in1[None, None], flipped[None, None], (1,) * in1.ndim, [(n - 1, n - 1) for n in in2.shape], precision=precision
    )[0, 0]
    return _window_of_mode(out, in1.shape, in2.shape, mode, axes, later)


@one_program(static=("mode", "axes"), everywhere=True)
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """The convolution of two arrays, by Fourier transforms.

    Args:
      in1, in2: arrays of one rank.
      mode: ``"full"``; ``"same"``: the size of `in1`, centered; ``"valid"``: without padding.
      axes: the axes of the convolution (None: all); the arrays are broadcast along others.

    Examples:

      >>> jax.scipy.signal.fftconvolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.])).round(3)
      Array([1.       , 3.0000002, 5.       , 3.0000002], dtype=float32)
    """
    _check_mode("fftconvolve", mode)
    in1, in2 = inexact("fftconvolve", in1, in2)
    if in1.ndim != in2.ndim:
        raise ValueError(f"fftconvolve: in1 and in2 have one rank, got shapes {in1.shape} and {in2.shape}")
    axes = axes_tuple(axes, in1.ndim)
    _check_valid(in1, in2, mode, axes)
    if in1.size == 0 or in2.size == 0:
        raise ValueError(f"fftconvolve: both inputs have elements, got shapes {in1.shape} and {in2.shape}")
    for a in range(in1.ndim):
        if a not in axes and in1.shape[a] != in2.shape[a] and 1 not in (in1.shape[a], in2.shape[a]):
            raise ValueError(f"fftconvolve: shapes {in1.shape} and {in2.shape} do not broadcast outside of axes {axes}")
    dtype = in1.dtype
    if not axes:
        return in1 * in2
    wide = np.promote_types(dtype, np.float32) if dtypes.finfo(dtype).bits < 32 else dtype
    x, y = in1.astype(wide), in2.astype(wide)
    sizes = [in1.shape[a] + in2.shape[a] - 1 for a in axes]
    if dtypes.is_complex(wide):
        full = jnp.fft.ifftn(jnp.fft.fftn(x, sizes, axes=axes) * jnp.fft.fftn(y, sizes, axes=axes), sizes, axes=axes)
    else:
        full = jnp.fft.irfftn(jnp.fft.rfftn(x, sizes, axes=axes) * jnp.fft.rfftn(y, sizes, axes=axes), sizes, axes=axes)
    return _window_of_mode(full.astype(dtype), in1.shape, in2.shape, mode, axes)


@one_program(static=("mode", "method", "precision", "mirror", "later"), everywhere=True)
def _convolve(in1, in2, *, mode, method, precision, mirror, later):
    in1, in2 = inexact("convolve", in1, in2)
    if mirror:
        in2 = jnp.flip(in2)
        in2 = jnp.conj(in2) if dtypes.is_complex(in2.dtype) else in2
    if in1.ndim != in2.ndim:
        raise ValueError(f"convolve: in1 and in2 have one rank, got shapes {in1.shape} and {in2.shape}")
    if in1.size == 0 or in2.size == 0:
        raise ValueError(f"convolve: both inputs have elements, got shapes {in1.shape} and {in2.shape}")
    _check_valid(in1, in2, mode, range(in1.ndim))
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _direct(in1, in2, mode, precision, later)


def _checked(name: str, in1, in2, mode: str, method: str, precision, mirror: bool, later: int = 1) -> Array:
    _check_mode(name, mode)
    one_of(name, "method", method, ("auto", "direct", "fft"))
    return _convolve(in1, in2, mode=mode, method=method, precision=precision, mirror=mirror, later=later)


def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """The convolution of two arrays of one rank.

    Args:
      in1, in2: arrays; integers become floats.
      mode: ``"full"``; ``"same"``: the size of `in1`, centered; ``"valid"``: without padding.
      method: ``"direct"``, ``"fft"``, or ``"auto"``, the same as "direct".
      precision: of the products, for the direct method.

    Examples:

      >>> jax.scipy.signal.convolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.]), mode="same")
      Array([1., 3., 5.], dtype=float32)
    """
    return _checked("convolve", in1, in2, mode, method, precision, False)


def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """The correlation of two arrays of one rank: the convolution with `in2` reversed and conjugated.

    Args:
      in1, in2: arrays; integers become floats.
      mode, method, precision: as in `convolve`.

    Examples:

      >>> jax.scipy.signal.correlate(jnp.array([1., 2., 3.]), jnp.array([0., 1.]))
      Array([1., 2., 3., 0.], dtype=float32)
    """
    return _checked("correlate", in1, in2, mode, method, precision, True)


def _two_dimensional(name: str, in1, in2, mode, boundary, fillvalue, precision, mirror) -> Array:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}: the boundary is filled with 0, got {boundary=}, {fillvalue=}; pad first")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name} takes matrices, got ranks {jnp.ndim(in1)} and {jnp.ndim(in2)}")
    # SciPy centers a correlation of even size differently in two dimensions.
    return _checked(name, in1, in2, mode, "direct", precision, mirror, 0 if mirror else 1)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The convolution of two matrices.

    Args:
      in1, in2: matrices; integers become floats.
      mode, precision: as in `convolve`.
      boundary, fillvalue: must be "fill" and 0: there are zeros beyond the boundary.

    Raises:
      NotImplementedError: another boundary.
      ValueError: an operand is not a matrix.

    Examples:

      >>> jax.scipy.signal.convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2)))
      Array([[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]], dtype=float32)
    """
    return _two_dimensional("convolve2d", in1, in2, mode, boundary, fillvalue, precision, False)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The correlation of two matrices.

    Args:
      in1, in2: matrices; integers become floats.
      mode, precision: as in `convolve`.
      boundary, fillvalue: must be "fill" and 0: there are zeros beyond the boundary.

    Raises:
      NotImplementedError: another boundary.
      ValueError: an operand is not a matrix.

    Examples:

      >>> x = jnp.arange(9.).reshape(3, 3)
      >>> jax.scipy.signal.correlate2d(x, jnp.array([[1., 0.], [0., 1.]]), mode="valid")
      Array([[ 4.,  6.],
             [10., 12.]], dtype=float32)
    """
    return _two_dimensional("correlate2d", in1, in2, mode, boundary, fillvalue, precision, True)


# ---- trends ---------------------------------------------------------------------------------------------


def _widened(x: Array) -> Array:
    """`x`, with floats narrower than float32 as float32: sums of them overflow."""
    return x.astype(np.float32) if dtypes.finfo(x.dtype).bits < 32 else x


def _without_line(x: Array) -> Array:
    """`x` minus the line of least squares along its last axis."""
    n = x.shape[-1]
    t = np.arange(n) - (n - 1) / 2
    norm = float(np.sum(t * t))
    t = t.astype(dtypes.to_real_dtype(x.dtype))
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    if norm == 0:
        return centered
    slope = jnp.sum(centered * aligned(t, x), axis=-1, keepdims=True) / norm
    return centered - slope * aligned(t, x)


@one_program(static=("axis", "type", "bp", "overwrite_data"))
def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0, overwrite_data: None = None
) -> Array:
    """Subtract a trend from data.

    Args:
      data: array.
      axis: the axis along which the trend is removed.
      type: ``"constant"``: the mean; ``"linear"``: a line of least squares.
      bp: the positions that separate pieces; each piece has its own line.
      overwrite_data: must be None.

    Examples:

      >>> jax.scipy.signal.detrend(jnp.array([0., 2., 4., 6.])).round(3) + 0.
      Array([0., 0., 0., 0.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data is not supported: arrays are immutable.")
    one_of("detrend", "type", type, ("constant", "linear"))
    (data,) = inexact("detrend", data)
    axis = axis_index(axis, data.ndim)
    if type == "constant":
        return data - jnp.mean(data, axis=axis, keepdims=True)
    n = data.shape[axis]
    cuts = sorted({0, n, *np.atleast_1d(bp).tolist()})
    if cuts[0] < 0 or cuts[-1] > n:
        raise ValueError(f"detrend: breakpoints are in [0, {n}], the length of the axis; got {bp}")
    if not n:
        return data
    x = jnp.moveaxis(_widened(data), axis, -1)
    pieces = [_without_line(x[..., a:b]) for a, b in itertools.pairwise(cuts)]
    out = jnp.concatenate(pieces, axis=-1) if len(pieces) > 1 else pieces[0]
    return jnp.moveaxis(out.astype(data.dtype), -1, axis)


# ---- spectra --------------------------------------------------------------------------------------------

# Coefficients of ``a0 - a1 cos(t) + a2 cos(2 t)``
_COSINE_WINDOWS = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46), "blackman": (0.42, 0.5, 0.08), "boxcar": (1.0,)}


def _window(window, nperseg: int) -> Array | np.ndarray:
    """The periodic window of a name, or the given values of a window."""
    if isinstance(window, str) and window in _COSINE_WINDOWS:
        if nperseg == 1:  # the sum of the coefficients may be 0
            return np.ones(1)
        t = 2 * math.pi * np.arange(nperseg) / nperseg
        return sum((-1) ** k * a * np.cos(k * t) for k, a in enumerate(_COSINE_WINDOWS[window]))
    if isinstance(window, str | tuple):
        from scipy.signal import get_window  # other windows are SciPy's, computed on the host

        return get_window(window, nperseg)
    window = window if hasattr(window, "ndim") else np.asarray(window)
    if window.ndim != 1 or window.shape[0] != nperseg:
        raise ValueError(f"window must have shape ({nperseg},), the value of nperseg; got {window.shape}")
    return window


def _extended(x: Array, boundary: str | None, n: int) -> Array:
    """`x` with n more values at both ends of its last axis."""
    if boundary is None or n == 0:
        return x
    width = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if boundary == "zeros":
        return jnp.pad(x, width)
    if boundary == "constant":
        return jnp.pad(x, width, mode="edge")
    reflect = {"even": "even", "odd": "odd"}[boundary]
    return jnp.pad(x, width, mode="reflect", reflect_type=reflect)


_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def _segment_sizes(length: int, window, nperseg: int | None, noverlap: int | None, nfft: int | None):
    if not isinstance(window, str | tuple):
        size = np.shape(window)[0]
        if nperseg is not None and nperseg != size:
            raise ValueError(f"nperseg={nperseg} is not the length of the window, {size}; leave it out")
        nperseg = size
    nperseg = 256 if nperseg is None else int(nperseg)
    nperseg = min(nperseg, length) if isinstance(window, str | tuple) else nperseg
    if nperseg > length:
        raise ValueError(f"nperseg={nperseg} is more than the signal has, {length}")
    nfft = nperseg if nfft is None else int(nfft)
    return nperseg, _overlap(nperseg, noverlap, nfft), nfft


def _overlap(nperseg: int, noverlap: int | None, nfft: int) -> int:
    """The number of samples that segments share: `noverlap`, by default half a segment."""
    if nperseg < 1:
        raise ValueError(f"nperseg is positive, got {nperseg}")
    if nfft < nperseg:
        raise ValueError(f"nfft={nfft} is less than nperseg={nperseg}")
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    if noverlap >= nperseg:
        raise ValueError(f"noverlap={noverlap} is not less than nperseg={nperseg}")
    return noverlap


def _detrender(detrend_kind) -> Callable[[Array], Array]:
    if not detrend_kind:
        return lambda x: x
    if callable(detrend_kind):
        return detrend_kind
    return lambda x: detrend(x, axis=-1, type=detrend_kind)


def _segments_transform(x, win, nperseg, step, nfft, trend, one_sided):
    count = (x.shape[-1] - nperseg) // step + 1
    index = np.arange(count)[:, None] * step + np.arange(nperseg)
    pieces = trend(x[..., index])
    pieces = pieces * aligned(win, pieces)
    return jnp.fft.rfft(pieces.real, nfft) if one_sided else jnp.fft.fft(pieces, nfft)


def _spectra(
    name,
    x,
    y,
    fs,
    window,
    nperseg,
    noverlap,
    nfft,
    detrend,
    return_onesided,
    scaling,
    axis,
    mode,
    boundary=None,
    padded=False,
):
    """Frequencies, times, and transforms (`mode` "stft") or cross spectra ("psd") of windowed segments.

    The result has the frequencies at `axis` and the segments last.
    """
    one_of(name, "boundary", boundary, _BOUNDARIES)
    one_of(name, "scaling", scaling, ("density", "spectrum"))
    x, *others = map(_widened, inexact(name, x, *(() if y is None else (y,))))
    y = others[0] if others else None
    axis = axis_index(axis, x.ndim)
    x = jnp.moveaxis(x, axis, -1)
    if y is not None:
        y = jnp.moveaxis(y, axis, -1)
        if any(dims.is_constant_dim(v.shape[-1]) and not v.shape[-1] for v in (x, y)):
            x, y = x[..., :0], y[..., :0]
        length = max(x.shape[-1], y.shape[-1])
        x, y = (jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, length - v.shape[-1])]) for v in (x, y))
        batch = jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        x, y = (jnp.broadcast_to(v, (*batch, length)) for v in (x, y))
    if dims.is_constant_dim(x.shape[-1]) and not x.shape[-1]:  # an empty result for an empty input, as in SciPy
        nothing = jnp.moveaxis(jnp.zeros(x.shape, dtypes.to_real_dtype(x.dtype)), -1, axis)
        return nothing, nothing, lax.complex(nothing, nothing)
    nperseg, noverlap, nfft = _segment_sizes(x.shape[-1], window, nperseg, noverlap, nfft)
    step = nperseg - noverlap
    real = dtypes.to_real_dtype(x.dtype)
    win = jnp.asarray(_window(window, nperseg)).astype(real)
    prepared = []
    for v in (x,) if y is None else (x, y):
        v = _extended(v, boundary, nperseg // 2)
        if padded:
            v = jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, -(v.shape[-1] - nperseg) % step)])
        prepared.append(v)
    one_sided = return_onesided and not dtypes.is_complex(x.dtype)
    trend = _detrender(detrend)
    spectra = [_segments_transform(v, win, nperseg, step, nfft, trend, one_sided) for v in prepared]
    scale = 1 / (fs * jnp.sum(win * win)) if scaling == "density" else 1 / jnp.sum(win) ** 2
    if mode == "stft":
        out = spectra[0] * jnp.sqrt(scale).astype(spectra[0].dtype)
    else:
        out = jnp.conj(spectra[0]) * spectra[-1] * jnp.asarray(scale, spectra[0].dtype)
        if one_sided:
            doubled = np.full(out.shape[-1], 2.0)
            doubled[0] = 1
            if nfft % 2 == 0:
                doubled[-1] = 1
            out = out * aligned(doubled.astype(out.dtype), out)
    total = prepared[0].shape[-1]
    times = np.arange(nperseg / 2, total - nperseg / 2 + 1, step) / float(fs)
    if boundary is not None:
        times = times - nperseg / 2 / float(fs)
    freqs = (np.fft.rfftfreq if one_sided else np.fft.fftfreq)(nfft, 1 / float(fs))
    to_array = lambda v: jnp.asarray(v, dtypes.to_real_dtype(out.dtype))
    out = jnp.moveaxis(out, -1, axis)  # [..., segments, frequencies]: the frequencies take the axis of the samples
    return to_array(freqs), to_array(times), out


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: np.ndarray[Any, Any] | str | tuple[str, float] = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str | Callable[..., Any] = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Short-time Fourier transforms.

    Args:
      x: samples along `axis`.
      fs: samples per unit of time.
      window: its name, a tuple of name and parameters, or its values.
      nperseg: the length of segments; at most that of `x`.
      noverlap: the number of samples that segments share; None is half a segment.
      nfft: the length of the transforms; None is `nperseg`.
      detrend: the kind of trend to take off each segment, a function, or False.
      return_onesided: of real `x`, only frequencies >= 0.
      boundary: the kind of extension of `x` by half a segment: "even", "odd", "constant", "zeros", None.
      padded: pad with zeros to a whole number of segments.

    Returns:
      ``(frequencies, times, transforms)``; the transforms have the frequencies at `axis` and the times last.

    Examples:

      >>> x = jnp.sin(2 * jnp.pi * jnp.arange(32.) / 4)
      >>> frequencies, times, spectrum = jax.scipy.signal.stft(x, nperseg=8)
      >>> spectrum.shape
      (5, 9)
      >>> frequencies[jnp.argmax(jnp.abs(spectrum[:, 4]))]
      Array(0.25, dtype=float32)
    """
    return _spectra(
        "stft",
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        "spectrum",
        axis,
        "stft",
        boundary,
        padded,
    )


def _median_bias(n: int) -> float:
    """The expected median of n exponential variables of mean 1, for odd n (Allen et al. 2012, appendix B)."""
    k = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (k + 1) - 1 / k))


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: np.ndarray[Any, Any] | str | tuple[str, float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | Callable[..., Any] = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals, by Welch's method.

    Args:
      x, y: samples along `axis`; the shorter one is padded with zeros. None for `y` is `x`.
      scaling: ``"density"``: power per frequency; ``"spectrum"``: power.
      average: over segments, ``"mean"`` or ``"median"``.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided: as for `stft`.

    Returns:
      ``(frequencies, densities)``, with the frequencies at `axis`.

    Examples:

      >>> t = jnp.arange(64.)
      >>> x = jnp.sin(2 * jnp.pi * t / 8)
      >>> frequencies, density = jax.scipy.signal.csd(x, -x, nperseg=16)
      >>> frequencies[jnp.argmax(jnp.abs(density))]
      Array(0.125, dtype=float32)
    """
    one_of("csd", "average", average, ("mean", "median"))
    freqs, _, out = _spectra(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, "psd"
    )
    if not freqs.size:
        return freqs, out
    if average == "mean":
        return freqs, jnp.mean(out, axis=-1)
    bias = _median_bias(out.shape[-1])
    median = lambda v: jnp.median(v, axis=-1) / bias
    return freqs, lax.complex(median(out.real), median(out.imag))


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: np.ndarray[Any, Any] | str | tuple[str, float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | Callable[..., Any] = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method; arguments and result as for `csd`.

    Examples:

      >>> x = jnp.sin(2 * jnp.pi * jnp.arange(64.) / 8)
      >>> frequencies, power = jax.scipy.signal.welch(x, nperseg=16)
      >>> frequencies[jnp.argmax(power)]
      Array(0.125, dtype=float32)
    """
    freqs, out = csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return freqs, out.real


@one_program(
    static=("fs", "window", "nperseg", "noverlap", "nfft", "input_onesided", "boundary", "time_axis", "freq_axis")
)
def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: np.ndarray[Any, Any] | str | tuple[str, float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal whose short-time Fourier transforms are nearest to these, by weighted overlap and add.

    Args:
      Zxx: transforms, with frequencies and times along two axes.
      input_onesided: the frequencies are those of a real signal.
      boundary: the signal was extended by half a segment.
      fs, window, nperseg, noverlap, nfft: as for `stft`; defaults follow from the number of frequencies.
      time_axis, freq_axis: the axes of `Zxx` along which times and frequencies run.

    Returns:
      ``(times, signal)``.

    Examples:

      >>> x = jnp.sin(jnp.arange(32.))
      >>> frequencies, times, spectrum = jax.scipy.signal.stft(x, nperseg=8)
      >>> times, again = jax.scipy.signal.istft(spectrum, nperseg=8)
      >>> jnp.allclose(again, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    (z,) = inexact("istft", Zxx)
    if z.ndim < 2:
        raise ValueError(f"istft: Zxx has an axis of frequencies and one of times, got shape {z.shape}")
    time_axis, freq_axis = axis_index(time_axis, z.ndim), axis_index(freq_axis, z.ndim)
    if time_axis == freq_axis:
        raise ValueError(f"istft: time_axis and freq_axis are two axes, got {time_axis} for both")
    z = z.astype(dtypes.to_complex_dtype(z.dtype))
    frequencies, count = z.shape[freq_axis], z.shape[time_axis]
    natural = 2 * (frequencies - 1) if input_onesided else frequencies
    if nperseg is None and not isinstance(window, str | tuple):
        nperseg = np.shape(window)[0]
    nperseg = natural if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == natural + 1 else natural
    noverlap = _overlap(nperseg, noverlap, nfft)
    step = nperseg - noverlap
    batch = [a for a in range(z.ndim) if a not in (time_axis, freq_axis)]
    z = jnp.transpose(z, (*batch, time_axis, freq_axis))
    pieces = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(z, nfft)[..., :nperseg]
    real = dtypes.to_real_dtype(z.dtype)
    win = jnp.asarray(_window(window, nperseg)).astype(real)
    total = nperseg + (count - 1) * step
    index = np.arange(count)[:, None] * step + np.arange(nperseg)
    x = (
        jnp.zeros((*pieces.shape[:-2], total), pieces.dtype)
        .at[..., index]
        .add(pieces * lax.broadcast_to_rank(win * jnp.sum(win), pieces.ndim))
    )
    weight = jnp.zeros(total, real).at[index].add(jnp.broadcast_to(win * win, index.shape))
    if boundary:
        half = nperseg // 2
        x, weight = x[..., half : total - half], weight[half : total - half]
    x = x / lax.broadcast_to_rank(jnp.where(weight > 1e-10, weight, 1), x.ndim)
    if x.ndim > 1 and time_axis != z.ndim - 1:
        x = jnp.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
    times = np.arange(total - 2 * (nperseg // 2) * bool(boundary)) / float(fs)
    return jnp.asarray(times, real), x
