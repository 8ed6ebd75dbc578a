"""`jax.scipy.fft`: cosine transforms of type 2 and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import aligned, array, axis_index, inexact

__all__ = ["dct", "dctn", "idct", "idctn"]


def _check(name: str, type: int, norm: str | None) -> None:
    if type != 2:
        raise NotImplementedError(f"{name}: only type=2 is implemented, got type={type}.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: norm={norm!r} is not implemented; use None, 'backward' or 'ortho'.")


def _resized(x: Array, n: int | None, axis: int) -> Array:
    """`x` cut or padded with zeros to length n."""
    if n is None:
        return x
    if n < 1:
        raise ValueError(f"the number of data points must be positive, got {n}")
    size = x.shape[axis]
    if n < size:
        return x[(slice(None),) * axis + (slice(n),)]
    return jnp.pad(x, [(0, n - size if d == axis else 0) for d in range(x.ndim)])


def _halves(x: Array, transform) -> Array:
    """A real-linear transform of the real and the imaginary part."""
    if not dtypes.is_complex(x.dtype):
        return transform(x)
    return lax.complex(transform(x.real), transform(x.imag))


def _angles(n: int, dtype) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of ``pi k / 2n``, computed in float64."""
    k = np.arange(n) * (math.pi / (2 * n))
    return np.cos(k).astype(dtype), np.sin(k).astype(dtype)


def _dct(x: Array, ortho: bool) -> Array:
    """Along the last axis: by the transform of length n of the reordered values (Makhoul 1980)."""
    n = x.shape[-1]
    v = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], axis=-1)
    f = jnp.fft.fft(v)
    c, s = (aligned(v, f) for v in _angles(n, f.real.dtype))
    out = 2 * (f.real * c + f.imag * s)
    if ortho:
        scale = np.full(n, math.sqrt(1 / (2 * n)))
        scale[0] = math.sqrt(1 / (4 * n))
        out = out * aligned(scale.astype(out.dtype), out)
    return out


def _idct(x: Array, ortho: bool) -> Array:
    n = x.shape[-1]
    if ortho:
        scale = np.full(n, math.sqrt(2 * n))
        scale[0] = math.sqrt(4 * n)
        x = x * aligned(scale.astype(x.dtype), x)
    c, s = (aligned(v, x) for v in _angles(n, x.dtype))
    mirrored = jnp.concatenate([jnp.zeros_like(x[..., :1]), jnp.flip(x[..., 1:], -1)], axis=-1)
    f = lax.complex((x * c + mirrored * s) / 2, (x * s - mirrored * c) / 2)
    v = jnp.fft.ifft(f).real
    out = jnp.zeros_like(v)
    middle = (n + 1) // 2
    out = out.at[..., ::2].set(v[..., :middle])
    if n > 1:
        out = out.at[..., 1::2].set(jnp.flip(v[..., middle:], -1))
    return out


def _along(name: str, core, x: ArrayLike, n: int | None, axis: int, norm: str | None) -> Array:
    (x,) = inexact(name, x)
    axis = axis_index(axis, x.ndim)
    x = jnp.moveaxis(_resized(x, n, axis), axis, -1)
    if x.shape[-1] == 0:
        raise ValueError(f"{name}: axis {axis} of length 0 has no transform")
    if dtypes.finfo(x.dtype).bits < 32 and not dtypes.is_complex(x.dtype):
        x = x.astype(np.float32)  # as Fourier transforms are
    out = _halves(x, lambda part: core(part, norm == "ortho"))
    return jnp.moveaxis(out, -1, axis)


def _along_one(name: str, what: str, transform: Callable, example: str) -> Callable[..., Array]:
    def function(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        _check(name, type, norm)
        return _along(name, transform, x, n, axis, norm)

    text = f"""{what}

    Args:
      x: array; of dtypes of less than 32 bits, the result is float32.
      type: 2.
      n: the length: `x` is cut or padded with zeros.
      axis: along which to transform.
      norm: None or ``"backward"``: the sum as it is; ``"ortho"``: orthonormal.
    """
    return one_program(
        named(function, name, __name__, text, example), static=("type", "n", "axis", "norm"), everywhere=True
    )


dct: Final = _along_one(
    "dct",
    r"The discrete cosine transform, :math:`y_k = 2 \sum_j x_j \cos(\pi k (2 j + 1) / 2 n)`.",
    _dct,
    example="""
    >>> jax.scipy.fft.dct(jnp.array([1., 1., 1., 1.]))
    Array([8., 0., 0., 0.], dtype=float32)
    """,
)
idct: Final = _along_one(
    "idct",
    "The inverse of `dct`.",
    _idct,
    example="""
    >>> x = jnp.array([1., 2., 4.])
    >>> jax.scipy.fft.idct(jax.scipy.fft.dct(x)).round(3)
    Array([1., 2., 4.], dtype=float32)
    """,
)


def _over_axes(
    name: str, fun, x: ArrayLike, s: int | Sequence[int] | None, axes: int | Sequence[int] | None, norm: str | None
) -> Array:
    x = array(name, x)
    ndim = x.ndim
    s, axes = ([v] if isinstance(v, int | np.integer) else v for v in (s, axes))
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    axes = [axis_index(a, ndim) for a in axes]
    sizes = [None] * len(axes) if s is None else list(s)
    if len(sizes) != len(axes):
        raise ValueError(f"s and axes must have one length, got {s} and {tuple(axes)}")
    if len(set(axes)) != len(axes):
        raise ValueError(f"axes must be unique, got {tuple(axes)}")
    for axis, n in zip(axes, sizes, strict=True):
        x = fun(x, 2, n, axis, norm)
    return x


def _along_several(name: str, what: str, transform: Callable, example: str) -> Callable[..., Array]:
    def function(
        x: ArrayLike,
        type: int = 2,
        s: int | Sequence[int] | None = None,
        axes: int | Sequence[int] | None = None,
        norm: str | None = None,
    ) -> Array:
        _check(name, type, norm)
        return _over_axes(name, transform, x, s, axes, norm)

    text = f"""{what} along several axes.

    Args:
      x: array; of dtypes of less than 32 bits, the result is float32.
      type: 2.
      s: the length of each axis: `x` is cut or padded with zeros. Default: its own lengths.
      axes: the axes. Default: the last ``len(s)``, or all without `s`.
      norm: as for {what}.

    Raises:
      ValueError: an axis occurs twice, or `s` and `axes` differ in length.
    """
    return named(function, name, __name__, text, example)


dctn: Final = _along_several(
    "dctn",
    "`dct`",
    dct,
    example="""
    >>> jax.scipy.fft.dctn(jnp.ones((2, 2)), norm="ortho").round(3)
    Array([[2., 0.],
           [0., 0.]], dtype=float32)
    """,
)
idctn: Final = _along_several(
    "idctn",
    "`idct`",
    idct,
    example="""
    >>> x = jnp.array([[1., 2.], [3., 4.]])
    >>> jax.scipy.fft.idctn(jax.scipy.fft.dctn(x)).round(3)
    Array([[1.       , 2.       ],
           [3.0000002, 4.       ]], dtype=float32)
    """,
)
