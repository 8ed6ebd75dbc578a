"""Window functions, and the Bessel function in Kaiser's window."""

from __future__ import annotations

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.public import public
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import inexact

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]


def _window(M: int, formula) -> Array:
    """``formula(n, M - 1)`` for n = 0, ..., M - 1; ones for M <= 1."""
    M = dims.whole_number(M, "M")
    dtype = dtypes.default_float_dtype()
    if M <= 1:
        return jnp.ones((max(M, 0),), dtype)
    return formula(jnp.asarray(lax.iota(np.int32, M), dtype), np.asarray(M - 1, dtype))


@one_program(static=("M",))
def _cosines(M: int, *coefficients: float) -> Array:
    """A sum of cosines ``c[k] * cos(2 pi k n / (M - 1))``."""

    def formula(n, last):
        angle = n * (2 * np.pi / last)
        return sum(c * jnp.cos(k * angle) if k else c for k, c in enumerate(coefficients))

    return _window(M, formula)


@one_program(static=("M",))
def bartlett(M: int) -> Array:
    """The triangular window of `M` points.

    Examples:

      >>> jnp.bartlett(5)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(M, lambda n, last: 1 - abs(2 * n / last - 1))


def blackman(M: int) -> Array:
    """Blackman's window of `M` points: ``0.42 - 0.5 cos(t) + 0.08 cos(2t)``.

    Examples:

      >>> jnp.blackman(3).round(3)
      Array([-0.,  1., -0.], dtype=float32)
    """
    return _cosines(M, 0.42, -0.5, 0.08)


def hamming(M: int) -> Array:
    """Hamming's window of `M` points: ``0.54 - 0.46 cos(t)``.

    Examples:

      >>> jnp.hamming(3).round(3)
      Array([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    return _cosines(M, 0.54, -0.46)


def hanning(M: int) -> Array:
    """Hann's window of `M` points: ``0.5 - 0.5 cos(t)``.

    Examples:

      >>> jnp.hanning(5).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosines(M, 0.5, -0.5)


@one_program(static=("M",))
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window of `M` points: ``i0(beta * sqrt(1 - (2n/(M-1) - 1)**2)) / i0(beta)``.

    Args:
      M: the number of points, a known int.
      beta: the shape, a scalar: 0 gives ones; the larger it is, the narrower is the window.

    Returns:
      An array of floats of shape ``(M,)``.

    Examples:

      >>> jnp.kaiser(3, 2.).round(3)
      Array([0.439, 1.   , 0.439], dtype=float32)
    """

    def formula(n, last):
        (shape,) = inexact("kaiser", beta)
        if dtypes.is_complex(shape.dtype):
            raise ValueError(f"jnp.kaiser: beta is a real number, got {shape.dtype}")
        shape = shape.astype(n.dtype)
        half = last / 2
        root = jnp.sqrt(jnp.maximum(1 - ((n - half) / half) ** 2, 0))
        # The ratio of i0 without overflow: i0(x) is exp(abs(x)) * i0e(x).
        return lax.bessel_i0e(shape * root) / lax.bessel_i0e(shape) * jnp.exp(abs(shape) * (root - 1))

    return _window(M, formula)


@one_program
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Raises:
      ValueError: `x` is complex.

    Examples:

      >>> jnp.i0(jnp.array([0., 1.]))
      Array([1.0000001, 1.2660658], dtype=float32)
    """
    (x,) = inexact("i0", x)
    if dtypes.is_complex(x.dtype):
        raise ValueError(public(f"Unsupported input type to jax.numpy.i0: {x.dtype}; it is defined for real numbers."))
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)
