"""`jax.numpy.fft`: discrete Fourier transforms.

All of them are `lax.fft` over at most three trailing axes at a time, with axes moved, cut or padded before and
scaled after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike, F
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import array, axes_tuple, axis_index, inexact

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_LAX_AXES = 3  # the number of axes that one lax.fft transforms


def _transform(name: str, kind: str, a: ArrayLike, s, axes, norm) -> Array:
    """The transform `kind` (FFT, IFFT, RFFT, IRFFT) of `a` over `axes`."""
    one_of(name, "norm", norm, (None, "backward", "ortho", "forward"))
    (a,) = inexact(f"fft.{name}", a)
    if kind == "RFFT" and dtypes.is_complex(a.dtype):
        raise ValueError(f"only real valued inputs supported for {name}")
    if a.dtype not in _WIDE:  # the transforms exist for 32 and 64 bit parts
        a = a.astype(np.float32)
    if axes is None:
        axes = range(a.ndim) if s is None else range(a.ndim - len(s), a.ndim)
    axes = [axis_index(d, a.ndim) for d in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"fft.{name}: each axis is transformed once, got axes {tuple(axes)}")
    if s is not None:
        s = [dims.integer(n, "n") if not dims.is_symbolic(n) else n for n in s]
        if len(s) > len(axes):
            raise ValueError(f"fft.{name}: s has more entries than there are axes, got {tuple(s)}, {tuple(axes)}")
        axes = axes[: len(s)] if len(s) < len(axes) else axes
        if any(dims.is_constant_dim(n) and n < 1 for n in s):
            raise ValueError(f"Shape should be positive. fft.{name} got s={tuple(s)}")
    if not axes:
        return a if kind in ("RFFT", "IRFFT") else a.astype(dtypes.to_complex_dtype(a.dtype))
    lengths = [a.shape[d] for d in axes] if s is None else s
    if kind == "IRFFT" and s is None:
        lengths[-1] = 2 * (a.shape[axes[-1]] - 1)
    for d, n in zip(axes, lengths, strict=True):
        wanted = n // 2 + 1 if kind == "IRFFT" and d == axes[-1] else n
        if dims.is_constant_dim(wanted) and wanted < 1 or dims.is_constant_dim(n) and n < 1:
            raise ValueError(
                f"jnp.fft.{name}: axis {d} of length {a.shape[d]} is too short: invalid number of data points ({n})"
            )
        a = _resize(a, d, wanted)
    if kind in ("FFT", "IFFT", "IRFFT") and not dtypes.is_complex(a.dtype):
        a = a.astype(dtypes.to_complex_dtype(a.dtype))
    places = list(range(a.ndim - len(axes), a.ndim))
    moved = axes != places
    if moved:
        a = jnp.moveaxis(a, axes, places)
    a = _in_groups(a, kind, lengths)
    if norm in ("ortho", "forward"):
        a = a * jnp.asarray(_scale(kind, lengths, norm, dtypes.to_real_dtype(a.dtype))).astype(a.dtype)
    return jnp.moveaxis(a, places, axes) if moved else a


_WIDE = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


def _in_groups(a: Array, kind: str, lengths: list) -> Array:
    """Transform the last axes. The real axis is the last one: RFFT starts with it, IRFFT ends with it."""
    if len(lengths) <= _LAX_AXES:
        return lax.fft(a, kind, tuple(lengths))
    head, tail = lengths[:-_LAX_AXES], lengths[-_LAX_AXES:]
    rest = "IFFT" if kind in ("IFFT", "IRFFT") else "FFT"
    first = lambda x: _rotated(x, len(tail), lambda y: _in_groups(y, rest, head))
    if kind == "IRFFT":
        return lax.fft(first(a), kind, tuple(tail))
    return first(lax.fft(a, kind, tuple(tail)))


def _rotated(a: Array, count: int, transform) -> Array:
    """Apply `transform` with the last `count` axes moved to the front."""
    last, front = list(range(a.ndim - count, a.ndim)), list(range(count))
    return jnp.moveaxis(transform(jnp.moveaxis(a, last, front)), front, last)


def _resize(a: Array, axis: int, n: Any) -> Array:
    """Cut or pad with zeros behind to length `n`."""
    size = a.shape[axis]
    if dims.definitely_equal(size, n):
        return a
    if dims.at_least(size, n):
        return lax.slice_in_dim(a, 0, n, axis=axis)
    padding = [(0, n - size if d == axis else 0, 0) for d in range(a.ndim)]
    return lax.pad(a, np.zeros((), a.dtype), padding)


def _scale(kind: str, lengths: list, norm: str, dtype: np.dtype):
    """The factor from the default scaling (inverse transforms divide by the size) to `norm`."""
    size = dims.size(lengths)
    inverse = kind in ("IFFT", "IRFFT")
    if not dims.is_constant_dim(size):
        size = dims.dim_as_value(size).astype(dtype)
        root = jnp.sqrt(size) if norm == "ortho" else size
        return root if inverse else 1 / root
    root = math.sqrt(size) if norm == "ortho" else float(size)
    return np.asarray(root if inverse else 1 / root, dtype)


def _one(name, kind, a, n, axis, norm):
    return _transform(name, kind, a, None if n is None else [n], [_single(name, axis)], norm)


def _single(name: str, axis: Any) -> int:
    if isinstance(axis, (tuple, list)):
        raise ValueError(f"fft.{name} transforms one axis, got axis={axis}; use fft.{name}n")
    return dims.integer(axis, "axis")


_NORM = """norm: scaling. ``"backward"`` (default) divides inverse transforms by the size, ``"forward"`` the others,
        ``"ortho"`` both by its root."""

_ONE = """{what}

    Args:
      a: {values}.
      n: {length}; the axis is cut or padded with zeros to fit.
      axis: the axis to transform.
      {norm}

    Returns:
      {result}
    """
_MANY = """{what}

    Args:
      a: {values}.
      s: lengths per axis ({length}); axes are cut or padded with zeros to fit.
      axes: the axes to transform; {default}.
      {norm}

    Returns:
      {result}
    """

# kind: (transform, values, length, result)
_KINDS = {
    "FFT": ("The discrete Fourier transform", "array", "number of points, default all", "A complex array."),
    "IFFT": (
        "The inverse of the discrete Fourier transform",
        "array",
        "number of points, default all",
        "A complex array.",
    ),
    "RFFT": (
        "The discrete Fourier transform of real values",
        "real array",
        "number of points, default all",
        "A complex array with the ``n // 2 + 1`` frequencies that are not negative along the last axis.",
    ),
    "IRFFT": (
        "The inverse of the transform of real values",
        "array of frequencies that are not negative",
        "length of the result, default ``2 * (m - 1)`` along the last axis",
        "A real array.",
    ),
}


def _documented(function: F, name: str, kind: str, text: str, over: str, default: str, example: str) -> F:
    what, values, length, result = _KINDS[kind]
    text = text.format(
        what=f"{what} over {over}.", values=values, length=length, result=result, norm=_NORM, default=default
    )
    return named(function, name, __name__, text, example)


def _over_one_axis(kind: str, example: str) -> Callable[..., Array]:
    name = kind.lower()

    def function(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return _one(name, kind, a, n, axis, norm)

    return _documented(function, name, kind, _ONE, "one axis", "", example)


def _over_two_axes(kind: str, example: str) -> Callable[..., Array]:
    name = f"{kind.lower()}2"

    def function(
        a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Array:
        if len(axes) != 2:
            raise ValueError(f"fft.{name} transforms two axes, got axes={axes}")
        return _transform(name, kind, a, s, axes, norm)

    return _documented(function, name, kind, _MANY, "two axes", "default the last two", example)


def _over_several_axes(kind: str, example: str) -> Callable[..., Array]:
    name = f"{kind.lower()}n"

    def function(
        a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
    ) -> Array:
        return _transform(name, kind, a, s, axes, norm)

    return _documented(function, name, kind, _MANY, "several axes", "default all, or the last ``len(s)``", example)


fft: Final = _over_one_axis(
    "FFT",
    """
    >>> x = jnp.array([1., 0., -1., 0.])
    >>> jnp.fft.fft(x)
    Array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], dtype=complex64)
    >>> jnp.fft.fft(x, n=2)
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """,
)
ifft: Final = _over_one_axis(
    "IFFT",
    """
    >>> x = jnp.array([1., 2., 3., 4.])
    >>> jnp.fft.ifft(jnp.fft.fft(x)).real
    Array([1., 2., 3., 4.], dtype=float32)
    """,
)
rfft: Final = _over_one_axis(
    "RFFT",
    """
    >>> jnp.fft.rfft(jnp.array([1., 0., -1., 0.]))
    Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)
    """,
)
irfft: Final = _over_one_axis(
    "IRFFT",
    """
    >>> x = jnp.array([1., 2., 3., 4., 5.])
    >>> jnp.fft.irfft(jnp.fft.rfft(x), n=5).round(3)
    Array([1.       , 2.       , 3.0000002, 4.       , 5.       ],
          dtype=float32)
    """,
)
fft2: Final = _over_two_axes(
    "FFT",
    """
    >>> jnp.fft.fft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """,
)
ifft2: Final = _over_two_axes(
    "IFFT",
    """
    >>> jnp.fft.ifft2(jnp.array([[4., 0.], [0., 0.]])).real
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """,
)
rfft2: Final = _over_two_axes(
    "RFFT",
    """
    >>> jnp.fft.rfft2(jnp.ones((2, 4)))
    Array([[8.+0.j, 0.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j, 0.+0.j]], dtype=complex64)
    """,
)
irfft2: Final = _over_two_axes(
    "IRFFT",
    """
    >>> jnp.fft.irfft2(jnp.array([[4., 0.], [0., 0.]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """,
)
fftn: Final = _over_several_axes(
    "FFT",
    """
    >>> jnp.fft.fftn(jnp.ones((2, 2, 2)), axes=(0, 2))[:, 0, :]
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """,
)
ifftn: Final = _over_several_axes(
    "IFFT",
    """
    >>> jnp.fft.ifftn(jnp.array([[4., 0.], [0., 0.]])).real
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """,
)
rfftn: Final = _over_several_axes(
    "RFFT",
    """
    >>> jnp.fft.rfftn(jnp.ones((2, 2, 4))).shape
    (2, 2, 3)
    """,
)
irfftn: Final = _over_several_axes(
    "IRFFT",
    """
    >>> jnp.fft.irfftn(jnp.array([[4., 0.], [0., 0.]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """,
)


_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform, which is real, of a signal with Hermitian symmetry, given by its nonnegative half.

    Args:
      a: array.
      n: length of the result, default ``2 * (m - 1)``.
      axis: the axis.
      norm: as for `fft`.

    Examples:

      >>> jnp.fft.hfft(jnp.array([4., 1., 0.]))
      Array([6., 4., 2., 4.], dtype=float32)
    """
    one_of("hfft", "norm", norm, _OPPOSITE)
    return _one("hfft", "IRFFT", jnp.conj(array("fft.hfft", a)), n, axis, _OPPOSITE[norm])


@one_program(static=("n", "axis", "norm"))
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: half of the Hermitian signal with the real `a` as its transform.

    Args:
      a: real array.
      n: number of points, default all; the axis is cut or padded with zeros to fit.
      axis: the axis to transform.
      norm: as for `fft`.

    Returns:
      A complex array; the axis has length ``n // 2 + 1``.

    Raises:
      ValueError: `a` is complex, or `norm` is unknown.

    Examples:

      >>> jnp.fft.ihfft(jnp.array([6., 4., 4., 4.])).real
      Array([4.5, 0.5, 0.5], dtype=float32)
    """
    one_of("ihfft", "norm", norm, _OPPOSITE)
    return jnp.conj(_one("ihfft", "RFFT", a, n, axis, _OPPOSITE[norm]))


def _frequencies(name: str, count: int, n: int, d: ArrayLike, dtype, device, positions) -> Array:
    if isinstance(n, (list, tuple)) or np.ndim(n):
        raise ValueError(f"fft.{name}: n is an int, got {n}")
    if isinstance(d, (list, tuple)):
        raise ValueError(f"fft.{name}: d is one number, got {d}")
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, name)
    count = max(count, 0) if type(count) is int else count
    out = jnp.asarray(positions(lax.iota(np.int32, count)), dtype) / jnp.asarray(d * n, dtype)
    if device is not None:
        out = jnp.asarray(out, device=device)
    return out


@one_program(static=("n", "dtype", "device"))
def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of `fft` in cycles per unit: 0, 1, ... and then the negative ones, over ``n * d``.

    Args:
      n: number of points.
      d: their spacing.
      dtype: of the result, default the default float type.
      device: where to put it.

    Examples:

      >>> jnp.fft.fftfreq(4, d=0.5)
      Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    half = (n + 1) // 2 if not np.ndim(n) else 0
    return _frequencies("fftfreq", n, n, d, dtype, device, lambda k: jnp.where(k < half, k, k - n))


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: type | None = None, device: Any = None) -> Array:
    """The frequencies of `rfft` in cycles per unit: 0, 1, ..., n // 2, over ``n * d``.

    Args:
      n: number of points.
      d: their spacing.
      dtype: of the result, default the default float type.
      device: where to put it.

    Examples:

      >>> jnp.fft.rfftfreq(5, d=0.1)
      Array([0., 2., 4.], dtype=float32)
    """
    return _frequencies("rfftfreq", n // 2 + 1 if not np.ndim(n) else 0, n, d, dtype, device, lambda k: k)


def _shift(name: str, x: ArrayLike, axes, amount) -> Array:
    x = array(f"fft.{name}", x)
    axes = axes_tuple(axes, x.ndim)
    return jnp.roll(x, tuple(amount(x.shape[d]) for d in axes), axes) if axes else x


@one_program(static=("axes",))
def fftshift(x: ArrayLike, axes: None | int | Sequence[int] = None) -> Array:
    """Move the zero frequency to the middle of axes.

    Args:
      x: array.
      axes: None (all), one axis, or several.

    Returns:
      An array of the shape and dtype of `x`.

    Examples:

      >>> jnp.fft.fftshift(jnp.array([0, 1, 2, -2, -1]))
      Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shift("fftshift", x, axes, lambda n: n // 2)


@one_program(static=("axes",))
def ifftshift(x: ArrayLike, axes: None | int | Sequence[int] = None) -> Array:
    """The inverse of `fftshift`.

    Args:
      x: array.
      axes: None (all), one axis, or several.

    Returns:
      An array of the shape and dtype of `x`.

    Examples:

      >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
      Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shift("ifftshift", x, axes, lambda n: -(n // 2))
