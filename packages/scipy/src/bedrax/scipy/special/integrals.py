"""Exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

import math

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.scipy.defining import derivatives, floats, special, widened
from bedrax.scipy.special import chebyshev as series
from bedrax.scipy.special.chebyshev import chebyshev

__all__ = ["exp1", "expi", "expn", "sici", "spence"]


@special(lambda out, x: -jnp.exp(-x) / x)
@widened
def exp1(x: ArrayLike) -> Array:
    r"""The exponential integral :math:`E_1(x) = \int_x^\infty e^{-t} / t\, dt`; infinite at 0, NaN for negative x.

    Examples:

      >>> jax.scipy.special.exp1(jnp.array([1., 2.])).round(3)
      Array([0.21900001, 0.049     ], dtype=float32)
    """
    low = x <= 1
    inner, outer = jnp.where(low & (x > 0), x, 1), jnp.where(low, 1, x)
    # E_1(x) = -gamma - log(x) + x - x^2 / (2 2!) + ... (DLMF 6.6.2)
    total = lax.full_like(x, 0)
    for k in range(18, 0, -1):
        total = total * inner + (-1) ** (k + 1) / (k * math.factorial(k))
    near = total * inner - (jnp.log(inner) + np.euler_gamma)
    outer = jnp.where(jnp.isinf(outer), 800, outer)
    far = jnp.exp(-outer) / outer * chebyshev(series.E1, (outer - 4) / (outer + 2))
    out = jnp.where(low, near, far)
    return jnp.where(x == 0, jnp.inf, jnp.where((x < 0) | jnp.isnan(x), jnp.nan, out))


@special(lambda out, x: jnp.exp(x) / x)
@widened
def expi(x: ArrayLike) -> Array:
    r"""The exponential integral :math:`\mathrm{Ei}(x) = -\int_{-x}^\infty e^{-t} / t\, dt` (principal value).

    Examples:

      >>> jax.scipy.special.expi(jnp.array([1., 2.])).round(3)
      Array([1.8950001, 4.9540005], dtype=float32)
    """

    def at(mask, default):
        return jnp.where(mask, x, default)

    positive = jnp.where(x > 0, x, 1)
    near = np.euler_gamma + jnp.log(positive) + positive * chebyshev(series.EIN, jnp.minimum(positive, 6) / 3 - 1)
    out = jnp.where(x < 0, -exp1.formula(jnp.where(x < 0, -x, 1)), near)
    mid, high, top = at((x > 6) & (x <= 12), 6), at((x > 12) & (x <= 24), 12), at(x > 24, 24)
    scaled = jnp.where(x > 24, chebyshev(series.EI_24, 48 / top - 1), chebyshev(series.EI_12, high / 6 - 3))
    scaled = jnp.where(x > 12, scaled, chebyshev(series.EI_6, mid / 3 - 3))
    far = at(x > 6, 6)
    # exp(x) / x in two steps: the exponential alone would overflow where the quotient does not
    half = jnp.exp(0.5 * far)
    out = jnp.where(x > 6, jnp.where(jnp.isinf(far), jnp.inf, scaled * half / far * half), out)
    return jnp.where(x == 0, -jnp.inf, jnp.where(jnp.isnan(x), x, out))


def _expn_fraction(n, x):
    """``exp(x) E_n(x)`` for x > 1, a continued fraction (DLMF 8.19.17, even part) by Steed's algorithm."""
    eps = float(np.finfo(x.dtype).eps)
    b = x + n
    d = 1 / b
    delta = d

    def unfinished(state):
        i, h, delta, *_ = state
        return (i < 500) & jnp.any(abs(delta) > eps * abs(h))

    def step(state):
        i, h, delta, b, d = state
        k = i.astype(x.dtype)
        a = -k * (n + k - 1)
        b = b + 2
        d = 1 / (b + a * d)
        delta = (b * d - 1) * delta
        return i + 1, h + delta, delta, b, d

    return lax.while_loop(unfinished, step, (np.int32(1), d, delta, b, d))[1]


def _expn_series(n, x):
    """``E_n(x)`` for 0 < x <= 1 and n >= 1 (DLMF 8.19.8)."""
    total = lax.full_like(x, 0)
    power = lax.full_like(x, 1)  # (-x)^k / k!
    for k in range(20):
        if k:
            power = power * (-x) / k
        distance = k - n + 1
        total = total - jnp.where(distance == 0, 0, power / jnp.where(distance == 0, 1, distance))
    # The logarithm's term: (-x)^(n-1) / (n-1)! (digamma(n) - log(x))
    parity = jnp.where((n - 1) % 2 == 0, 1, -1).astype(x.dtype)
    log_x = jnp.log(x)
    return total + parity * jnp.exp((n - 1) * log_x - lax.lgamma(n)) * (lax.digamma(n) - log_x)


@special(None, lambda out, n, x: -expn.formula(n - 1, x))
@widened
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    r"""The generalized exponential integral :math:`E_n(x) = \int_1^\infty e^{-x t} / t^n\, dt`.

    Args:
      n: integers >= 0; NaN for others.
      x: floats >= 0; NaN for others. Differentiable by x only.

    Examples:

      >>> jax.scipy.special.expn(2, jnp.array([0., 1.])).round(3)
      Array([1.   , 0.148], dtype=float32)
    """
    whole = (n == jnp.floor(n)) & (n >= 0)
    low = x <= 1
    order = jnp.where(whole & (n >= 1), n, 1)
    inner = jnp.where(low & (x > 0), x, 1)
    outer = jnp.where(low | jnp.isnan(x), 2, jnp.minimum(x, 800))
    out = jnp.where(low, _expn_series(order, inner), jnp.exp(-outer) * _expn_fraction(order, outer))
    at_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), jnp.inf)
    out = jnp.where(x == 0, at_zero, out)
    out = jnp.where(n == 0, jnp.exp(-x) / x, out)
    return jnp.where(whole & (x >= 0), out, jnp.nan)


def _sine_cosine_parts(x):
    y = abs(x)
    near = y <= 8
    inner, outer = jnp.where(near, y, 1), jnp.where(near, 8, jnp.where(jnp.isinf(y), 1e30, y))
    t = 128 / (outer * outer) - 1
    return (near, inner, chebyshev(series.SICI_F, t) / outer, chebyshev(series.SICI_G, t) / (outer * outer), outer)


@derivatives(lambda out, x: jnp.sinc(x / math.pi))
@widened
def _si(x):
    near, inner, f, g, outer = _sine_cosine_parts(x)
    low = inner * chebyshev(series.SI, inner * inner / 32 - 1)
    high = math.pi / 2 - f * jnp.cos(outer) - g * jnp.sin(outer)
    return jnp.where(jnp.isnan(x), x, jnp.copysign(jnp.where(near, low, high), x))


@derivatives(lambda out, x: jnp.cos(x) / x)
@widened
def _ci(x):
    near, inner, f, g, outer = _sine_cosine_parts(x)
    inner = jnp.where(inner == 0, 1, inner)
    low = np.euler_gamma + jnp.log(inner) - inner * inner * chebyshev(series.CIN, inner * inner / 32 - 1)
    high = f * jnp.sin(outer) - g * jnp.cos(outer)
    out = jnp.where(near, low, high)
    return jnp.where(
        x == 0, -jnp.inf, jnp.where(jnp.isnan(x), x, jnp.where(jnp.isinf(x), jnp.where(x > 0, 0.0, jnp.nan), out))
    )


@one_program(everywhere=True)
def sici(x: ArrayLike) -> tuple[Array, Array]:
    r"""The sine and cosine integrals, :math:`\mathrm{Si}` and :math:`\mathrm{Ci}`, of real x (Ci of ``abs(x)``).

    Returns:
      ``(Si, Ci)``.

    Examples:

      >>> sine, cosine = jax.scipy.special.sici(jnp.array([1., 2.]))
      >>> sine.round(3)
      Array([0.94600004, 1.605     ], dtype=float32)
    """
    (x,) = floats("sici", x)
    return _si(x), _ci(x)


def _debye_coefficients() -> tuple[float, ...]:
    """``B_{2k} / (2k + 1)!`` for k = 1, 2, ..."""
    numbers = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
    return tuple(b / math.factorial(2 * k + 3) for k, b in enumerate(numbers))


def _spence_slope(out, x):
    near = abs(x - 1) < 1e-3
    d = x - 1
    quotient = jnp.log(x) / jnp.where(near, 1, -d)
    return jnp.where(near, -1 + d / 2 - d * d / 3 + d * d * d / 4 - d**4 / 5, quotient)


@special(_spence_slope)
@widened
def spence(x: ArrayLike) -> Array:
    r"""Spence's function, :math:`\int_1^x \frac{\log t}{1 - t} dt`, the dilogarithm of ``1 - x``; NaN for negative x.

    Examples:

      >>> jax.scipy.special.spence(jnp.array([1., 0.])).round(3)
      Array([-0.       ,  1.6450001], dtype=float32)
    """
    # With u = -log(x): Li_2(1 - x) = u - u^2 / 4 + sum B_2k u^(2k+1) / (2k+1)!, for 1/2 <= x <= 2; beyond, the
    # reflections of DLMF 25.12.4 and 25.12.6.
    large = x > 2
    safe = jnp.where(x > 0, x, 1)
    v = jnp.where(large, 1 / safe, safe)
    small = v < 0.5
    y = jnp.where(small, 1 - v, v)
    u = -jnp.log(y)
    square = u * u
    total = lax.full_like(x, 0)
    for c in reversed(_debye_coefficients()):
        total = total * square + c
    core = u * (1 + square * total) - square / 4
    below = jnp.where(small, math.pi**2 / 6 + jnp.log(v) * u - core, core)
    log_x = jnp.log(safe)
    out = jnp.where(large, -0.5 * log_x * log_x - below, below)
    out = jnp.where(x == 0, math.pi**2 / 6, out)
    return jnp.where(x < 0, jnp.nan, jnp.where(x == jnp.inf, -jnp.inf, jnp.where(jnp.isnan(x), x, out)))
