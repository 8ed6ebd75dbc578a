"""Hypergeometric functions of real arguments (methods: Pearson, Olver and Porter 2017; DLMF 13 and 15).

Series and asymptotic series are summed in loops that end when no element changes any more.
"""

from __future__ import annotations

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.scipy.defining import special, widened
from bedrax.scipy.special.gamma_family import gammasgn

__all__ = ["hyp1f1", "hyp2f1"]

_LIMIT = 50_000


def _sum_series(ratio, like, limit: int, asymptotic: bool = False):
    """``1 + r_0 + r_0 r_1 + ...`` with the ratios ``r_k = ratio(k)`` of terms.

    An asymptotic series is cut off where its terms begin to grow.
    """
    eps = float(np.finfo(like.dtype).eps)

    def unfinished(state):
        k, live, *_ = state
        return (k < limit) & jnp.any(live)

    def step(state):
        k, live, total, term, calm = state
        r = ratio(k.astype(like.dtype))
        new = term * r
        if asymptotic:
            live = live & ~(abs(new) > abs(term))
        total = jnp.where(live, total + new, total)
        # Three small terms in a row: one alone may be small because a factor passes by zero.
        calm = jnp.where(abs(new) <= eps / 4 * abs(total), calm + 1, 0)
        live = live & (calm < 3) & (new != 0) & jnp.isfinite(total)
        return k + 1, live, total, jnp.where(live, new, term), calm

    one = lax.full_like(like, 1)
    start = (np.int32(0), lax.full_like(like, True, np.bool_), one, one, lax.full_like(like, 0, np.int32))
    return lax.while_loop(unfinished, step, start)[2]


def _by_differences(fun, i: int, *args):
    """The derivative of `fun` by a parameter, by central differences of fourth order in the parameter."""
    x = args[i]
    h = float(np.finfo(x.dtype).eps) ** 0.2 * jnp.maximum(abs(x), 0.25) / 4
    at = lambda k: fun(*args[:i], x + k * h, *args[i + 1 :])
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)


def _nonpositive_integer(x):
    return (x <= 0) & (x == jnp.floor(x))


@special(
    lambda out, a, b, x: _by_differences(hyp1f1.formula, 0, a, b, x),
    lambda out, a, b, x: _by_differences(hyp1f1.formula, 1, a, b, x),
    lambda out, a, b, x: a / b * hyp1f1.formula(a + 1, b + 1, x),
)
@widened
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function ``1F1(a; b; x)`` of real arguments.

    The derivative by x is exact; those by a and b are differences of fourth order. Where the terms of its series
    nearly cancel (large parameters of different sign) digits are lost.

    Args:
      a, b, x: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.hyp1f1(1., 1., jnp.array([0., 1.])).round(3)
      Array([1.       , 2.7180002], dtype=float32)
    """
    # Kummer's transformation (DLMF 13.2.39): for negative x, the terms of exp(x) M(b - a, b, -x) do not alternate.
    polynomial = _nonpositive_integer(a)
    turn = (x < 0) & ~polynomial
    a1, y = jnp.where(turn, b - a, a), jnp.where(turn, -x, x)
    factor = jnp.where(turn, x, 0)
    far = (y > 60) & (y > 4 * (abs(a1) + 1) * (abs(b - a1) + 1)) & ~polynomial
    finite = jnp.isfinite(a) & jnp.isfinite(b) & jnp.isfinite(x)
    inner = jnp.where(far | ~finite, 0, y)
    near = _sum_series(lambda k: (a1 + k) / (b + k) * inner / (k + 1), x, _LIMIT) * jnp.exp(factor)
    # Large y (DLMF 13.7.1): gamma(b) / gamma(a) exp(y) y^(a-b) sum (1-a)_k (b-a)_k / (k! y^k)
    outer = jnp.where(far, y, 100)
    tail = _sum_series(lambda k: (1 - a1 + k) * (b - a1 + k) / ((k + 1) * outer), x, 200, asymptotic=True)
    pole = _nonpositive_integer(a1)
    safe_a = jnp.where(pole, 1, a1)
    scale = jnp.exp(lax.lgamma(b) - lax.lgamma(safe_a) + outer + factor + (a1 - b) * jnp.log(outer))
    asymptotic = jnp.where(pole, 0, gammasgn(b) * gammasgn(safe_a) * scale * tail)
    out = jnp.where(far, asymptotic, near)
    ends_first = polynomial & (a >= b)
    out = jnp.where(_nonpositive_integer(b) & ~ends_first, jnp.inf, out)
    return jnp.where(finite, jnp.where((a == 0) | (x == 0), 1, out), jnp.nan)


def _gauss_series(a, b, c, z):
    return _sum_series(lambda k: (a + k) * (b + k) / ((c + k) * (k + 1)) * z, z, _LIMIT)


def _gamma_ratio(tops, bottoms):
    """A quotient of products of gamma functions; 0 where one below has a pole."""
    log = sign = None
    zero = False
    for x, s in [(x, 1) for x in tops] + [(x, -1) for x in bottoms]:
        pole = _nonpositive_integer(x)
        if s < 0:
            zero = zero | pole
            x = jnp.where(pole, 1, x)
        term, g = s * lax.lgamma(x), gammasgn(x)
        log, sign = (term, g) if log is None else (log + term, sign * g)
    return jnp.where(zero, 0, sign * jnp.exp(log))


@special(
    lambda out, a, b, c, x: _by_differences(hyp2f1.formula, 0, a, b, c, x),
    lambda out, a, b, c, x: _by_differences(hyp2f1.formula, 1, a, b, c, x),
    lambda out, a, b, c, x: _by_differences(hyp2f1.formula, 2, a, b, c, x),
    lambda out, a, b, c, x: a * b / c * hyp2f1.formula(a + 1, b + 1, c + 1, x),
)
@widened
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function ``2F1(a, b; c; x)`` of real arguments, for x <= 1.

    For x > 1 it is infinite, except if it is a polynomial, or a polynomial times an integer power of 1 - x.

    The derivative by x is exact; those by the parameters are differences of fourth order. Near x = 1 the series
    converges slowly if ``c - a - b`` is an integer.

    Args:
      a, b, c, x: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.hyp2f1(1., 1., 2., 0.5).round(3)
      Array(1.386, dtype=float32)
    """
    finite = jnp.isfinite(a) & jnp.isfinite(b) & jnp.isfinite(c) & jnp.isfinite(x)
    polynomial = _nonpositive_integer(a) | _nonpositive_integer(b)
    # Pfaff's transformation (DLMF 15.8.1) takes the negative axis to (0, 1).
    turn = (x < 0) & ~polynomial
    swap = turn & (
        _nonpositive_integer(c - a) | (abs(b) < abs(a))
    )  # keep the factor that ends the series, or is smaller
    a1, b1 = jnp.where(swap, b, a), jnp.where(swap, a, b)
    z = jnp.where(turn, x / jnp.where(turn, x - 1, 1), x)
    b1 = jnp.where(turn, c - b1, b1)
    power = jnp.where(turn, jnp.exp(-a1 * jnp.log1p(-jnp.where(turn, x, 0))), 1)
    ends = _nonpositive_integer(a1) | _nonpositive_integer(b1)
    gap = c - a1 - b1
    generic = abs(gap - jnp.round(gap)) > 1e-3
    # A polynomial times a power, which is real beyond 1 if the power is an integer.
    beyond = (z > 1) & (_nonpositive_integer(c - a1) | _nonpositive_integer(c - b1)) & (gap == jnp.round(gap))
    beyond = beyond & ~ends & ~_nonpositive_integer(c)
    inside = finite & ((z < 1) | ends | beyond)
    near_one = (z > 0.75) & (z < 1) & generic & ~ends
    # Near 1, by the two solutions in 1 - z (DLMF 15.8.4), unless they degenerate.
    w = jnp.where(near_one, 1 - z, 0.1)
    g = jnp.where(near_one, gap, 0.5)
    first = _gamma_ratio((c, g), (c - a1, c - b1)) * _gauss_series(a1, b1, 1 - g, w)
    second = _gamma_ratio((c, -g), (a1, b1)) * _gauss_series(c - a1, c - b1, 1 + g, w) * jnp.exp(g * jnp.log(w))
    # Elsewhere the series; Euler's transformation (DLMF 15.8.1) where it converges faster.
    euler = (z > 0.5) & (z < 1) & (gap < 0) & ~ends
    factor = jnp.where(euler, jnp.exp(gap * jnp.log1p(-jnp.where(euler, z, 0))), 1)
    factor = jnp.where(beyond, jnp.power(jnp.where(beyond, 1 - z, 1), jnp.where(beyond, gap, 0)), factor)
    euler = euler | beyond
    a2, b2 = jnp.where(euler, c - a1, a1), jnp.where(euler, c - b1, b1)
    direct = factor * _gauss_series(a2, b2, c, jnp.where(inside & ~near_one, z, 0))
    out = jnp.where(near_one, first + second, direct) * power
    at_one = jnp.where(gap > 0, _gamma_ratio((c, jnp.where(gap > 0, gap, 1)), (c - a1, c - b1)), jnp.inf)
    out = jnp.where((z == 1) & ~ends, jnp.where(turn, out, at_one), jnp.where((z > 1) & ~ends & ~beyond, jnp.inf, out))
    ends_first = (_nonpositive_integer(a) & (a >= c)) | (_nonpositive_integer(b) & (b >= c))
    out = jnp.where(_nonpositive_integer(c) & ~ends_first, jnp.inf, out)
    trivial = (x == 0) | (a == 0) | (b == 0)
    return jnp.where(finite, jnp.where(trivial, 1, out), jnp.nan)
