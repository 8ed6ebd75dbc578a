"""The error function and functions based on it: normal distribution, Dawson's, Faddeeva's, Fresnel's, Owen's functions."""

from __future__ import annotations

import functools
import math

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import array, inexact
from bedrax.scipy.defining import derivatives, floats, special, widened
from bedrax.scipy.special import chebyshev as series
from bedrax.scipy.special.chebyshev import chebyshev

__all__ = [
    "dawsn",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "fresnel",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "owens_t",
    "wofz",
]

_ROOT_HALF = math.sqrt(0.5)
_GAUSS = 2 / math.sqrt(math.pi)
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def erf(x: ArrayLike) -> Array:
    r"""The error function, :math:`\frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`.

    Examples:

      >>> jax.scipy.special.erf(jnp.array([0., 1.])).round(3)
      Array([0.        , 0.84300005], dtype=float32)
    """
    return lax.erf(*floats("erf", x))


def erfc(x: ArrayLike) -> Array:
    """``1 - erf(x)``, without cancellation.

    Examples:

      >>> jax.scipy.special.erfc(jnp.array([0., 1.])).round(3)
      Array([1.   , 0.157], dtype=float32)
    """
    return lax.erfc(*floats("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of `erf`; infinite at -1 and 1, NaN outside.

    Examples:

      >>> jax.scipy.special.erfinv(jax.scipy.special.erf(0.5)).round(3)
      Array(0.5, dtype=float32, weak_type=True)
    """
    return lax.erf_inv(*floats("erfinv", x))


def _square_parts(x):
    """``x * x`` as a sum of a number and a small correction, so that its exponential keeps its last digits."""
    bits = {np.dtype(np.float32): 12, np.dtype(np.float64): 27}[x.dtype]
    factor = x.dtype.type(2**bits + 1)
    big = abs(x) > 1e6
    safe = jnp.where(big, 0, x)
    high = safe * factor - (safe * factor - safe)  # Dekker's splitting: the square of `high` is exact
    low = safe - high
    return jnp.where(big, x * x, high * high), low * (safe + high)


def _exp_square(x, sign: int):
    """``exp(sign * x * x)``."""
    high, low = _square_parts(x)
    return jnp.exp(sign * high) * jnp.exp(sign * low)


@special(lambda out, x: 2 * x * out - _GAUSS)
@widened
def erfcx(x: ArrayLike) -> Array:
    """``exp(x**2) erfc(x)``; it falls as ``1 / (x sqrt(pi))`` where `erfc` underflows.

    Examples:

      >>> jax.scipy.special.erfcx(jnp.array([0., 100.])).round(4)
      Array([1.    , 0.0056], dtype=float32)
    """
    y = abs(x)
    huge = y > 1e7
    y = jnp.where(huge, 1, y)
    t = (y - 3.75) / (y + 3.75)
    positive = jnp.where(
        huge, 1 / (math.sqrt(math.pi) * jnp.where(huge, abs(x), 1)), chebyshev(series.ERFCX, t) / (1 + 2 * y)
    )
    negative = x < 0
    reflected = 2 * _exp_square(jnp.where(negative, x, 0), 1) - positive
    return jnp.where(negative, reflected, positive)


@special(lambda out, x: 1 - 2 * x * out)
@widened
def dawsn(x: ArrayLike) -> Array:
    r"""Dawson's integral, :math:`e^{-x^2} \int_0^x e^{t^2} dt`.

    Examples:

      >>> jax.scipy.special.dawsn(jnp.array([0., 1.])).round(3)
      Array([0.        , 0.53800005], dtype=float32)
    """
    y = abs(x)
    low = y <= 5
    inner, outer = jnp.where(low, x, 1), jnp.where(low, 5, x)
    near = inner * chebyshev(series.DAWSON_LOW, inner * inner * (2 / 25) - 1)
    far = chebyshev(series.DAWSON_HIGH, 50 / (outer * outer) - 1) / outer
    return jnp.where(low, near, far)


_HALF_WIDTH = 40  # terms of Weideman's series: 1e-14 relative to |w| in the upper half plane


@functools.cache
def _weideman() -> tuple[float, tuple[float, ...]]:
    """L and the coefficients of Weideman, "Computation of the complex error function" (1994), by a discrete transform."""
    n = _HALF_WIDTH
    m = 2 * n
    scale = math.sqrt(n / math.sqrt(2))
    theta = np.arange(-m + 1, m) * np.pi / m
    t = scale * np.tan(theta / 2)
    values = np.concatenate([[0.0], np.exp(-(t**2)) * (scale**2 + t**2)])
    a = np.fft.fft(np.fft.fftshift(values)).real / (2 * m)
    return scale, tuple(float(c) for c in a[1 : n + 1])


@derivatives(lambda out, z: lax.complex(jnp.zeros_like(z.real), lax.full_like(z.real, _GAUSS)) - 2 * z * out)
def _wofz(z):
    lower = z.imag < 0
    u = jnp.where(lower, -z, z)
    # Far away: the continued fraction (DLMF 7.9.3); elsewhere Weideman's rational series.
    far = u.real**2 + u.imag**2 > 64
    v = jnp.where(far, u, 8)
    fraction = v
    for k in range(12, 0, -1):
        fraction = v - (k / 2) / fraction
    one_i = lax.complex(jnp.zeros_like(z.real), jnp.ones_like(z.real))
    outer = one_i / (math.sqrt(math.pi) * fraction)
    scale, coefficients = _weideman()
    inside = jnp.where(far, 0, u)
    iz = one_i * inside
    ratio = (scale + iz) / (scale - iz)
    p = lax.full_like(z, 0)
    for c in reversed(coefficients):
        p = p * ratio + c
    inner = 2 * p / (scale - iz) ** 2 + (1 / math.sqrt(math.pi)) / (scale - iz)
    out = jnp.where(far, outer, inner)
    minus_square = jnp.where(lower, -z * z, 0)
    return jnp.where(lower, 2 * jnp.exp(minus_square) - out, out)


@one_program(everywhere=True)
def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function, ``exp(-z**2) erfc(-i z)``, of real or complex z; the result is complex.

    Examples:

      >>> jax.scipy.special.wofz(jnp.array([1j])).real.round(3)
      Array([0.42800003], dtype=float32)
    """
    (z,) = inexact("wofz", z)
    if not dtypes.is_complex(z.dtype):
        dtype = np.float64 if z.dtype == np.float64 else np.float32
        x = z.astype(dtype)
        return lax.complex(jnp.exp(-x * x), _GAUSS * dawsn.formula(x))
    return _wofz(z)


@derivatives(lambda out, x: jnp.sin(_half_turn(x)))
@widened
def _fresnel_s(x):
    near, f, g, s, c, inner = _fresnel_parts(x)
    far = 0.5 - f * c - g * s
    low = inner**3 * chebyshev(series.FRESNEL_S, 2 * (inner / 2.5) ** 4 - 1)
    return jnp.where(near, low, jnp.copysign(far, x))


@derivatives(lambda out, x: jnp.cos(_half_turn(x)))
@widened
def _fresnel_c(x):
    near, f, g, s, c, inner = _fresnel_parts(x)
    far = 0.5 + f * s - g * c
    low = inner * chebyshev(series.FRESNEL_C, 2 * (inner / 2.5) ** 4 - 1)
    return jnp.where(near, low, jnp.copysign(far, x))


def _half_turn(x):
    """``pi x^2 / 2``, less whole turns, which are subtracted before the product with pi loses them."""
    safe = jnp.where(jnp.isfinite(x), x, 0)
    high = jnp.round(safe)
    rest = safe - high
    # x^2 = high^2 + rest (x + high); the square of an integer is known modulo 4 exactly, if it is even or odd.
    odd = high - 2 * jnp.floor(high / 2)
    turns = odd + rest * rest + 2 * ((rest * high) - 2 * jnp.floor(rest * high / 2))
    return jnp.where(jnp.isfinite(x), (math.pi / 2) * turns, jnp.nan)


def _fresnel_parts(x):
    y = abs(x)
    near = y <= 2.5
    outer = jnp.where(near, 2.5, y)
    inner = jnp.where(near, x, 1)
    t = 2 * (2.5 / outer) ** 4 - 1
    f = chebyshev(series.FRESNEL_F, t) / outer
    g = chebyshev(series.FRESNEL_G, t) / outer**3
    angle = _half_turn(jnp.where(jnp.isinf(outer), 0, outer))
    return near, f, g, jnp.sin(angle), jnp.cos(angle), inner


@one_program(everywhere=True)
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    r"""Fresnel's integrals of real x, :math:`S = \int_0^x \sin(\pi t^2 / 2) dt` and C with the cosine.

    Returns:
      ``(S, C)``.

    Examples:

      >>> s, c = jax.scipy.special.fresnel(jnp.array([0., 1.]))
      >>> s.round(3)
      Array([0.        , 0.43800002], dtype=float32)
    """
    (x,) = floats("fresnel", x)
    return _fresnel_s(x), _fresnel_c(x)


def _floats_only(name: str, x: ArrayLike) -> list[Array]:
    x = array(name, x)
    if not dtypes.is_floating(x.dtype):
        raise TypeError(f"{name}: x.dtype={x.dtype} is not supported; pass floats.")
    return [x]


@special(lambda out, x: jnp.exp(-0.5 * x * x - _LOG_ROOT_2PI), read=_floats_only)
def ndtr(x: ArrayLike) -> Array:
    """The standard normal distribution function.

    Raises:
      TypeError: `x` is not of float dtype.

    Examples:

      >>> jax.scipy.special.ndtr(jnp.array([-jnp.inf, 0., 1.96])).round(3)
      Array([0.   , 0.5  , 0.975], dtype=float32)
    """
    half = x * _ROOT_HALF
    tail = 0.5 * lax.erfc(abs(half))
    return jnp.where(abs(half) < _ROOT_HALF, 0.5 + 0.5 * lax.erf(half), jnp.where(half > 0, 1 - tail, tail))


@derivatives(lambda out, x: jnp.exp(-0.5 * x * x - _LOG_ROOT_2PI - out))
@widened
def _log_ndtr(x):
    low = x < -1
    deep = jnp.where(low, x, -1)
    tail = jnp.log(0.5 * erfcx.formula(-deep * _ROOT_HALF)) - 0.5 * deep * deep
    high = jnp.where(low, -1, x)
    # Beyond 0 the logarithm is the logarithm of a number near 1.
    right = jnp.log1p(-0.5 * lax.erfc(jnp.where(x > 0, high, 0) * _ROOT_HALF))
    middle = jnp.log(0.5 * lax.erfc(-jnp.where(x > 0, 0, high) * _ROOT_HALF))
    return jnp.where(low, tail, jnp.where(x > 0, right, middle))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """``log(ndtr(x))``, accurate in both tails.

    Args:
      x: floats.
      series_order: the number of terms of an asymptotic series for the lower tail, 0 to 30. It is checked, and
        makes no difference: the tail comes from ``erfcx``, which is accurate everywhere.

    Raises:
      TypeError: `x` is not of float dtype, or `series_order` no integer.
      ValueError: `series_order` is out of its range.

    Examples:

      >>> jax.scipy.special.log_ndtr(jnp.array([0., -20.])).round(3)
      Array([  -0.693, -203.917], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: series_order is an int, got {series_order!r}")
    if not 0 <= series_order <= 30:
        raise ValueError(f"log_ndtr: series_order is in 0..30, got {series_order}")
    return _compiled_log_ndtr(*_floats_only("log_ndtr", x))


@one_program(everywhere=True)
def _compiled_log_ndtr(x):
    return _log_ndtr(x)


# Wichura, Algorithm AS 241 (1988): numerators and denominators, for the middle, the tails, and the far tails.
_MIDDLE = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_TAIL = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FAR_TAIL = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)


def _ratio(table, x):
    numerator, denominator = (
        functools.reduce(lambda total, c: total * x + c, reversed(t), lax.full_like(x, 0)) for t in table
    )
    return numerator / denominator


@special(lambda out, p: jnp.exp(0.5 * out * out + _LOG_ROOT_2PI), read=_floats_only)
@widened
def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: infinite at 0 and 1, NaN outside.

    Raises:
      TypeError: `p` is not of float dtype.

    Examples:

      >>> jax.scipy.special.ndtri(jnp.array([0.5, 0.975])).round(2)
      Array([0.       , 1.9599999], dtype=float32)
    """
    q = p - 0.5
    middle = abs(q) <= 0.425
    inner = jnp.where(middle, q, 0)
    near = inner * _ratio(_MIDDLE, 0.180625 - inner * inner)
    side = jnp.where(q < 0, p, 1 - p)
    r = jnp.sqrt(-jnp.log(jnp.where(middle | ~(side > 0), 0.05, side)))
    tail = jnp.where(r <= 5, _ratio(_TAIL, jnp.where(r <= 5, r, 5) - 1.6), _ratio(_FAR_TAIL, r - 5))
    tail = jnp.where(side == 0, jnp.inf, jnp.where(side < 0, jnp.nan, tail))
    return jnp.where(middle | jnp.isnan(p), near + jnp.where(jnp.isnan(p), p, 0), jnp.where(q < 0, -tail, tail))


@special(lambda out, y: -jnp.exp(out * out) / _GAUSS)
@widened
def erfcinv(y: ArrayLike) -> Array:
    """The inverse of `erfc`: infinite at 0, minus infinity at 2, NaN outside; accurate for small `y`, too.

    Examples:

      >>> jax.scipy.special.erfcinv(jnp.array([0., 0.5, 1.5]))
      Array([       inf,  0.4769363, -0.4769363], dtype=float32)
    """
    return -_ROOT_HALF * ndtri.formula(0.5 * y)


@functools.cache
def _legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(n)
    return (x + 1) / 2, w / 2


@special(
    lambda out, h, a: -0.5 / math.sqrt(2 * math.pi) * lax.erf(a * h * _ROOT_HALF) * jnp.exp(-0.5 * h * h),
    lambda out, h, a: jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)),
)
@widened
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    r"""Owen's function, :math:`\frac{1}{2\pi} \int_0^a \frac{e^{-h^2 (1 + x^2) / 2}}{1 + x^2} dx`.

    Args:
      h, a: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.owens_t(0., 1.).round(3)
      Array(0.125, dtype=float32)
    """
    h, size = abs(h), abs(a)
    big = size > 1
    # T(h, a) + T(ah, 1/a) = (ndtr(h) + ndtr(ah)) / 2 - ndtr(h) ndtr(ah), in complements for the tails (Owen 1956)
    ah = jnp.where(big & (h == 0), 0, size * h)
    slope = jnp.where(big, 1 / jnp.where(big, size, 1), size)
    height = jnp.where(big, ah, h)
    # The integrand is a Gaussian of width 1 / height: beyond 9 widths it is negligible.
    end = jnp.minimum(slope, 9 / jnp.maximum(height, 1))
    nodes, weights = _legendre(32)
    total = lax.full_like(h, 0)
    for node, weight in zip(nodes, weights, strict=True):
        x2 = (end * node) ** 2
        total = total + weight * jnp.exp(-0.5 * height * height * x2) / (1 + x2)
    small = total * end * jnp.exp(-0.5 * height * height) / (2 * math.pi)
    q_h, q_ah = 0.5 * lax.erfc(h * _ROOT_HALF), 0.5 * lax.erfc(ah * _ROOT_HALF)
    out = jnp.where(big, 0.5 * (q_h + q_ah) - q_h * q_ah - small, small)
    return jnp.where(jnp.isnan(h) | jnp.isnan(a), jnp.nan, jnp.where(a < 0, -out, out))
