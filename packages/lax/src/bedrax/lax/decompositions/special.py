"""Special functions as programs of lax functions.

All take and return float32 or float64 arrays of one shape; narrower floats are computed in float32.

Sources: DLMF (https://dlmf.nist.gov) 8.7, 8.9, 8.12 (incomplete gamma), 8.17.22 (incomplete beta), 5.11 (Stirling);
the modified Lentz algorithm for continued fractions (Thompson and Barnett 1986); Clenshaw's recurrence. The Chebyshev
coefficients were computed with mpmath to 40 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.lax.filling import full_like
from bedrax.lax.primitives import elementwise as e
from bedrax.lax.primitives import special as p
from bedrax.lax.primitives.control_flow import while_loop
from bedrax.lax.primitives.conversions import convert_to
from bedrax.lax.primitives.reductions import reduce_or
from bedrax.lax.primitives.shaping import broadcast_in_dim
from bedrax.lax.primitives.special import digamma, erfc, lgamma
from bedrax.lax.tables import decompositions

_F32 = np.dtype(np.float32)


def widened(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` with operands of one shape, and floats narrower than float32 computed in float32."""

    def program(*args):
        dtype = args[0].dtype
        shape = next((x.shape for x in args if x.shape), ())
        args = [x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in args]
        if dtypes.finfo(dtype).bits >= 32:
            return fun(*args)
        return convert_to(fun(*[convert_to(x, _F32) for x in args]), dtype)

    return program


def _c(x, value):
    return x.dtype.type(value)


def _eps(x) -> float:
    return float(np.finfo(x.dtype).eps)


def _where(condition, x, y):
    """Choice between arrays or Python numbers, at least one of them an array."""
    like = x if not isinstance(x, int | float) else y
    x, y = (full_like(like, v) if isinstance(v, int | float) else v for v in (x, y))
    return e.select(condition, x, y)


def _any(mask):
    return reduce_or(mask, tuple(range(len(mask.shape))))


def _iterate(active: Callable, step: Callable, state: tuple, limit: int) -> tuple:
    """Repeat ``state = step(i, *state)`` for i = 1, 2, ... on each element while it is `active`.

    A converged element is not updated: factors of 1 with rounding errors would accumulate.
    """

    def unfinished(carry):
        i, live, *_ = carry
        return e.bitwise_and(e.lt(i, np.int32(limit)), _any(live))

    def body(carry):
        i, live, *old = carry
        i = e.add(i, np.int32(1))
        new = step(convert_to(i, old[0].dtype), *old)
        state = [e.select(live, n, o) for n, o in zip(new, old, strict=True)]
        return (i, e.bitwise_and(live, active(*state)), *state)

    live = full_like(state[0], True, np.bool_)
    return tuple(while_loop(unfinished, body, (np.int32(0), live, *state))[2:])


# ---- incomplete gamma ----------------------------------------------------------------------------

_LIMIT = 20_000  # iterations grow with the square root of a; beyond _HUGE the asymptotic form takes over
_HUGE = 1e6


def _stirling_remainder(a):
    """``lgamma(a) - (a - 1/2) log(a) + a - log(2 pi)/2`` for a >= 10 (DLMF 5.11.1)."""
    z = e.div(_c(a, 1), e.square(a))
    total = full_like(a, 0)
    for k in reversed((1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)):
        total = e.add(e.mul(total, z), _c(a, k))
    return e.div(total, a)


def _log_weight(a, x):
    """``log(x**a exp(-x) / gamma(a + 1))``.

    For large a this is a difference of large numbers unless it is written with the distance of x from a.
    """
    small = e.sub(e.sub(e.mul(a, e.log(x)), x), lgamma(e.add(a, _c(a, 1))))
    big_a = _where(e.gt(a, _c(a, 10)), a, 10.0)
    mu = e.div(e.sub(x, big_a), big_a)
    bulk = e.mul(big_a, e.sub(e.log1p(mu), mu))
    scale = e.mul(_c(a, 0.5), e.log(e.mul(_c(a, 2 * math.pi), big_a)))
    return _where(e.gt(a, _c(a, 10)), e.sub(e.sub(bulk, scale), _stirling_remainder(big_a)), small)


def _lower_series(a, x, with_derivative: bool):
    """S and dS/da in ``P(a, x) = weight * S``, ``S = sum x^n / ((a+1)...(a+n))`` (DLMF 8.7.1, times e^x)."""
    one, eps = full_like(a, 1), _eps(a)
    zero = full_like(a, 0)

    def step(n, total, term, dtotal, dterm):
        ratio = e.div(x, e.add(a, n))
        term = e.mul(term, ratio)
        if with_derivative:
            dterm = e.sub(e.mul(dterm, ratio), e.div(term, e.add(a, n)))
        return e.add(total, term), term, e.add(dtotal, dterm), dterm

    def active(total, term, dtotal, dterm):
        going = e.gt(term, e.mul(total, _c(a, eps)))
        return e.bitwise_or(going, e.gt(e.abs(dterm), e.mul(e.abs(dtotal), _c(a, eps)))) if with_derivative else going

    total, _, dtotal, _ = _iterate(active, step, (one, one, zero, zero), _LIMIT)
    return total, dtotal


def _upper_fraction(a, x, with_derivative: bool):
    """h and dh/da in ``Q(a, x) = weight * a * h``, a continued fraction (DLMF 8.9.2, even part) by Lentz's algorithm."""
    eps = _eps(a)
    tiny = float(np.finfo(a.dtype).tiny) / eps
    b = e.add(e.sub(x, a), _c(a, 1))
    c = full_like(a, 1 / tiny)
    d = e.div(_c(a, 1), b)
    zero = full_like(a, 0)
    dd = e.square(d)  # b falls as a grows

    def step(n, h, dh, delta, ddelta, c, dc, d, dd):
        numerator = e.mul(n, e.sub(a, n))  # its derivative is n
        bn = e.add(b, e.mul(_c(a, 2), n))  # its derivative is -1
        denominator = e.add(e.mul(numerator, d), bn)
        new_d = e.div(_c(a, 1), denominator)
        new_c = e.add(bn, e.div(numerator, c))
        delta = e.mul(new_c, new_d)
        if with_derivative:
            slope = e.sub(e.add(e.mul(n, d), e.mul(numerator, dd)), _c(a, 1))
            new_dd = e.neg(e.mul(e.square(new_d), slope))
            new_dc = e.sub(e.div(e.sub(n, e.mul(numerator, e.div(dc, c))), c), _c(a, 1))
            ddelta = e.add(e.mul(new_dc, new_d), e.mul(new_c, new_dd))
            dh = e.add(e.mul(dh, delta), e.mul(h, ddelta))
            dc, dd = new_dc, new_dd
        return e.mul(h, delta), dh, delta, ddelta, new_c, dc, new_d, dd

    def active(h, dh, delta, ddelta, c, dc, d, dd):
        going = e.gt(e.abs(e.sub(delta, _c(a, 1))), _c(a, eps))
        if not with_derivative:
            return going
        change = e.mul(h, ddelta)
        return e.bitwise_or(going, e.gt(e.abs(change), e.mul(e.abs(dh), _c(a, eps))))

    start = (d, dd, full_like(a, 2), zero, c, zero, d, dd)
    h, dh, *_ = _iterate(active, step, start, _LIMIT)
    return h, dh


class _Regions:
    """Masks of the regions of the formulas, and operands that are harmless outside of their region."""

    def __init__(self, a: Array, x: Array) -> None:
        one = _c(a, 1)
        # XLA takes ``x >= 0`` as true for an x like abs(y), NaN or not, so that NaN is compared on its own.
        number = e.eq(x, x)
        self.valid = e.bitwise_and(e.bitwise_and(e.gt(a, _c(a, 0)), e.ge(x, _c(a, 0))), number)
        finite = e.bitwise_and(
            e.bitwise_and(self.valid, e.is_finite(a)), e.bitwise_and(e.is_finite(x), e.gt(x, _c(a, 0)))
        )
        self.huge = e.bitwise_and(finite, e.gt(a, _c(a, _HUGE)))
        rest = e.bitwise_and(finite, e.bitwise_not(self.huge))
        upper = e.bitwise_and(e.gt(x, one), e.gt(x, a))
        self.upper = e.bitwise_and(rest, upper)
        self.lower = e.bitwise_and(rest, e.bitwise_not(upper))
        self.a_low, self.x_low = _where(self.lower, a, 1.0), _where(self.lower, x, 0.5)
        self.a_up, self.x_up = _where(self.upper, a, 1.0), _where(self.upper, x, 2.0)
        self.a_any = _where(rest, a, 1.0)
        self.x_any = _where(rest, x, 1.0)
        self.a_huge, self.x_huge = _where(self.huge, a, 1.0), _where(self.huge, x, 1.0)


def _edges(value, r, a, x, at_zero, at_infinity):
    """The values at x = 0 and x = inf, and nan where none is defined (a <= 0, x < 0, a infinite)."""
    value = _where(e.eq(x, _c(x, 0)), at_zero, value)
    value = _where(e.eq(x, _c(x, math.inf)), at_infinity, value)
    return _where(e.bitwise_and(r.valid, e.is_finite(a)), value, math.nan)


def _uniform_upper(a, x):
    """Q for huge a: the uniform expansion of Temme to its first term (DLMF 8.12.4 and 8.12.8)."""
    mu = e.div(e.sub(x, a), a)
    near = e.lt(e.abs(mu), _c(a, 1e-2))
    # (lambda - 1 - log(lambda)) cancels for lambda near 1; a series replaces it there.
    series = full_like(a, 0)
    for k in range(8, 1, -1):
        series = e.add(e.mul(series, mu), _c(a, (-1) ** k / k))
    half_eta2 = _where(near, e.mul(series, e.square(mu)), e.sub(mu, e.log1p(mu)))
    half_eta2 = e.max(half_eta2, _c(a, 0))
    eta = e.mul(e.sign(mu), e.sqrt(e.mul(_c(a, 2), half_eta2)))
    c0_near = e.add(_c(a, -1 / 3), e.mul(eta, e.add(_c(a, 1 / 12), e.mul(eta, _c(a, -2 / 135)))))
    safe_mu, safe_eta = _where(near, 1.0, mu), _where(near, 1.0, eta)
    c0 = _where(near, c0_near, e.sub(e.div(_c(a, 1), safe_mu), e.div(_c(a, 1), safe_eta)))
    decay = e.exp(e.neg(e.mul(a, half_eta2)))
    root = e.sqrt(e.mul(_c(a, 2 * math.pi), a))
    tail = e.mul(_c(a, 0.5), erfc(e.mul(eta, e.sqrt(e.mul(_c(a, 0.5), a)))))
    return e.add(tail, e.div(e.mul(decay, c0), root))


def _incomplete_gamma(a, x, upper: bool):
    r = _Regions(a, x)
    weight = e.exp(_log_weight(r.a_any, r.x_any))
    series, _ = _lower_series(r.a_low, r.x_low, False)
    fraction, _ = _upper_fraction(r.a_up, r.x_up, False)
    p, q = e.mul(weight, series), e.mul(e.mul(weight, r.a_up), fraction)
    q_huge = _uniform_upper(r.a_huge, r.x_huge)
    if upper:
        value = _where(r.lower, e.sub(_c(a, 1), p), q)
        value = _where(r.huge, q_huge, value)
        return _limits(_edges(value, r, a, x, 1.0, 0.0), a, x, 1.0, 0.0)
    value = _where(r.lower, p, e.sub(_c(a, 1), q))
    value = _where(r.huge, e.sub(_c(a, 1), q_huge), value)
    return _limits(_edges(value, r, a, x, 0.0, 1.0), a, x, 0.0, 1.0)


def _limits(value, a, x, at_zero, at_infinity):
    """The limits for a = 0 (all weight is at 0) and a = inf (where x is finite)."""
    at_a_zero = e.bitwise_and(e.eq(a, _c(a, 0)), e.gt(x, _c(a, 0)))
    at_a_infinity = e.bitwise_and(e.eq(a, _c(a, math.inf)), e.bitwise_and(e.ge(x, _c(a, 0)), e.is_finite(x)))
    return _where(at_a_infinity, at_zero, _where(at_a_zero, at_infinity, value))


def igamma(a: Array, x: Array) -> Array:
    """The regularized lower incomplete gamma function."""
    return _incomplete_gamma(a, x, False)


def igammac(a: Array, x: Array) -> Array:
    """The regularized upper incomplete gamma function."""
    return _incomplete_gamma(a, x, True)


def _per_weight(r, a):
    """``dP/da / weight`` in the two regions together."""
    s, ds = _lower_series(r.a_low, r.x_low, True)
    low = e.add(ds, e.mul(s, e.sub(e.log(r.x_low), digamma(e.add(r.a_low, _c(a, 1))))))
    h, dh = _upper_fraction(r.a_up, r.x_up, True)
    up = e.mul(r.a_up, e.add(dh, e.mul(h, e.sub(e.log(r.x_up), digamma(r.a_up)))))
    return _where(r.lower, low, e.neg(up))


def _huge_sample_slope(a, x):
    """dx/da for huge a, from the Cornish-Fisher expansion x = a + z sqrt(a) + (z*z - 1)/3 + O(1/sqrt(a))."""
    return e.add(_c(a, 1), e.div(e.sub(x, a), e.mul(_c(a, 2), a)))


def igamma_grad_a(a: Array, x: Array) -> Array:
    """dP(a, x)/da: the derivatives of the series and of the fraction, term by term."""
    r = _Regions(a, x)
    value = e.mul(e.exp(_log_weight(r.a_any, r.x_any)), _per_weight(r, a))
    density = e.mul(e.exp(_log_weight(r.a_huge, r.x_huge)), e.div(r.a_huge, r.x_huge))
    value = _where(r.huge, e.neg(e.mul(density, _huge_sample_slope(r.a_huge, r.x_huge))), value)
    return _edges(value, r, a, x, 0.0, 0.0)


def random_gamma_grad(a: Array, x: Array) -> Array:
    """-(dP/da) / (dP/dx): the common weight, which may underflow, is never computed."""
    r = _Regions(a, x)
    # dP/dx is weight * a / x.
    value = e.neg(e.mul(_per_weight(r, a), e.div(r.x_any, r.a_any)))
    value = _where(r.huge, _huge_sample_slope(r.a_huge, r.x_huge), value)
    return _edges(value, r, a, x, 0.0, math.nan)


# ---- incomplete beta -----------------------------------------------------------------------------


def _log_beta_weight(a, b, x):
    """``log(x**a (1-x)**b / B(a, b))`` without differences of large logarithms of gamma functions."""
    ten, one = _c(a, 10), _c(a, 1)
    rest = e.sub(one, x)
    powers = e.add(e.mul(a, e.log(x)), e.mul(b, e.log1p(e.neg(x))))
    both_small = e.sub(powers, e.sub(e.add(lgamma(a), lgamma(b)), lgamma(e.add(a, b))))
    # One argument is large: Stirling's series for lgamma(large + small) - lgamma(large).
    small, large = e.min(a, b), e.max(e.max(a, b), ten)
    total = e.add(small, large)
    growth = e.add(
        e.sub(e.add(e.mul(small, e.log(total)), e.mul(e.sub(large, _c(a, 0.5)), e.log1p(e.div(small, large)))), small),
        e.sub(_stirling_remainder(total), _stirling_remainder(large)),
    )
    one_large = e.add(e.sub(powers, lgamma(small)), growth)
    # Both are large: in terms of the distance of x from the mean a / (a + b).
    p, q = e.max(a, ten), e.max(b, ten)
    total = e.add(p, q)
    away = e.sub(e.mul(x, q), e.mul(rest, p))
    bulk = e.add(e.mul(p, e.log1p(e.div(away, p))), e.mul(q, e.log1p(e.neg(e.div(away, q)))))
    scale = e.mul(_c(a, 0.5), e.log(e.div(e.mul(p, e.div(q, total)), _c(a, 2 * math.pi))))
    remainder = e.sub(_stirling_remainder(total), e.add(_stirling_remainder(p), _stirling_remainder(q)))
    both_large = e.add(e.add(bulk, scale), remainder)
    value = _where(e.gt(e.max(a, b), ten), one_large, both_small)
    return _where(e.gt(e.min(a, b), ten), both_large, value)


def _beta_fraction(a, b, x):
    """The continued fraction of I_x(a, b) (DLMF 8.17.22), two steps per turn, by Lentz's algorithm."""
    eps = _eps(a)
    tiny = float(np.finfo(a.dtype).tiny) / eps
    one = _c(a, 1)
    ab, a1 = e.add(a, b), e.add(a, one)

    def guarded(v):
        return _where(e.lt(e.abs(v), _c(a, tiny)), tiny, v)

    d = e.div(one, guarded(e.sub(one, e.div(e.mul(ab, x), a1))))

    def step(m, h, delta, c, d):
        m2 = e.add(m, m)
        even = e.div(e.mul(e.mul(m, e.sub(b, m)), x), e.mul(e.add(e.sub(a, one), m2), e.add(a, m2)))
        odd = e.neg(e.div(e.mul(e.mul(e.add(a, m), e.add(ab, m)), x), e.mul(e.add(a, m2), e.add(a1, m2))))
        d = e.div(one, guarded(e.add(one, e.mul(even, d))))
        c = guarded(e.add(one, e.div(even, c)))
        h = e.mul(h, e.mul(d, c))
        d = e.div(one, guarded(e.add(one, e.mul(odd, d))))
        c = guarded(e.add(one, e.div(odd, c)))
        delta = e.mul(d, c)
        return e.mul(h, delta), delta, c, d

    def active(h, delta, c, d):
        return e.gt(e.abs(e.sub(delta, one)), _c(a, eps))

    h, *_ = _iterate(active, step, (d, full_like(a, 2), full_like(a, 1), d), _LIMIT)
    return h


def betainc(a: Array, b: Array, x: Array) -> Array:
    """The regularized incomplete beta function; the symmetry I_x(a, b) = 1 - I_{1-x}(b, a) keeps the fraction fast."""
    zero, one = _c(a, 0), _c(a, 1)
    bad = e.bitwise_or(
        e.bitwise_or(e.lt(a, zero), e.lt(b, zero)), e.bitwise_not(e.bitwise_and(e.ge(x, zero), e.le(x, one)))
    )
    no_limit = e.bitwise_or(
        e.bitwise_and(e.eq(a, zero), e.eq(b, zero)), e.bitwise_and(e.eq(a, _c(a, math.inf)), e.eq(b, _c(a, math.inf)))
    )
    bad = e.bitwise_or(bad, e.bitwise_or(no_limit, e.bitwise_or(e.ne(a, a), e.ne(b, b))))
    inside = e.bitwise_and(e.gt(x, zero), e.lt(x, one))
    for v in (a, b):
        inside = e.bitwise_and(inside, e.bitwise_and(e.gt(v, zero), e.is_finite(v)))
    a_, b_, x_ = (_where(inside, v, 0.5) for v in (a, b, x))
    swap = e.gt(x_, e.div(e.add(a_, one), e.add(e.add(a_, b_), _c(a, 2))))
    p, q = _where(swap, b_, a_), _where(swap, a_, b_)
    y = _where(swap, e.sub(one, x_), x_)
    front = e.exp(_log_beta_weight(a_, b_, x_))
    value = e.div(e.mul(front, _beta_fraction(p, q, y)), p)
    value = _where(swap, e.sub(one, value), value)
    # Limits: all the mass is at 0 for a = 0 or b = inf, at 1 for b = 0 or a = inf.
    at_zero = e.bitwise_or(e.eq(a, zero), e.eq(b, _c(a, math.inf)))
    at_one = e.bitwise_or(e.eq(b, zero), e.eq(a, _c(a, math.inf)))
    value = _where(at_zero, 1.0, _where(at_one, 0.0, value))
    value = _where(e.eq(x, zero), 0.0, _where(e.eq(x, one), 1.0, value))
    return _where(bad, math.nan, value)


# ---- modified Bessel functions -------------------------------------------------------------------

# Chebyshev series on [-1, 1]: of exp(-x) I0(x) in x/4 - 1 for x <= 8, of sqrt(x) exp(-x) I0(x) in 16/x - 1 beyond;
# the same for I1, with exp(-x) I1(x) / x for x <= 8.
_I0_NEAR = (
    6.7679527440947608e-1,
    -3.046826723431984e-1,
    1.7162090152220878e-1,
    -9.4901097048047644e-2,
    4.9305284239670708e-2,
    -2.3737414805899469e-2,
    1.0546460394594998e-2,
    -4.3243099950505759e-3,
    1.6394756169413358e-3,
    -5.7637557453858237e-4,
    1.8850288509584166e-4,
    -5.7541950100821037e-5,
    1.6448448070728897e-5,
    -4.4167383584587506e-6,
    1.1173875391201037e-6,
    -2.6707938539406117e-7,
    6.0469950225419189e-8,
    -1.300025009986248e-8,
    2.6598237246823867e-9,
    -5.1897956016352629e-10,
    9.6758090353732369e-11,
    -1.7268262914415557e-11,
    2.9550526631296398e-12,
    -4.8564467831119295e-13,
    7.6761854986049356e-14,
    -1.1685332877993452e-14,
    1.715391285555133e-15,
    -2.4312798465479547e-16,
    3.3307945188222381e-17,
    -4.4153416464793394e-18,
)
_I0_FAR = (
    8.0449041101410883e-1,
    3.3691164782556941e-3,
    6.889758346916824e-5,
    2.8913705208347565e-6,
    2.0489185894690637e-7,
    2.2666689904981781e-8,
    3.3962320257083863e-9,
    4.9406023882249696e-10,
    1.1889147107846438e-11,
    -3.1499165279632414e-11,
    -1.3215811840447713e-11,
    -1.7941785315068061e-12,
    7.1801244513836662e-13,
    3.8527783827421427e-13,
    1.5400862175214098e-14,
    -4.1505693472872221e-14,
    -9.5548466988283076e-15,
    3.8116806693526224e-15,
    1.7725601330565264e-15,
    -3.4254856196772191e-16,
    -2.8276239805165835e-16,
    3.4612228676974611e-17,
    4.46562142029676e-17,
    -4.8305044859441821e-18,
    -7.233180487874754e-18,
    9.9214754121736986e-19,
    1.1936508908459821e-18,
)
_I1_NEAR = (
    2.5258718644363365e-1,
    -1.7641651835783406e-1,
    1.026436586898471e-1,
    -5.2945981208094991e-2,
    2.4726449030626517e-2,
    -1.0564084894626198e-2,
    4.1564229443128882e-3,
    -1.5135724506312531e-3,
    5.1228595616857577e-4,
    -1.6176081582589675e-4,
    4.7815651075500542e-5,
    -1.3273163656039436e-5,
    3.4702513081376785e-6,
    -8.5687202646954547e-7,
    2.0032947535521353e-7,
    -4.4450591287963281e-8,
    9.3815373864957718e-9,
    -1.8872497517228293e-9,
    3.625590281552117e-10,
    -6.6634897235020277e-11,
    1.1736186298890902e-11,
    -1.9839743977649437e-12,
    3.2237933659455747e-13,
    -5.0421855047279117e-14,
    7.6006842947354069e-15,
    -1.1055969477353863e-15,
    1.5536319577362005e-16,
    -2.1114212143581661e-17,
    2.7779141127610464e-18,
)
_I1_FAR = (
    7.7857623501828012e-1,
    -9.7610974913614684e-3,
    -1.1058893876262372e-4,
    -3.8825648088776904e-6,
    -2.5122362378702089e-7,
    -2.6314688468895195e-8,
    -3.835380385964237e-9,
    -5.5897434621965838e-10,
    -1.8974958123505412e-11,
    3.2526035830154882e-11,
    1.4125807436613781e-11,
    2.0356285441470895e-12,
    -7.1985517762459085e-13,
    -4.0835511110921973e-13,
    -2.1015418427726643e-14,
    4.2724400167119514e-14,
    1.0420276984128803e-14,
    -3.8144030724370078e-15,
    -1.8803547755107824e-15,
    3.3082023109209283e-16,
    2.9626289976459501e-16,
    -3.209525921993424e-17,
    -4.6503053684893583e-17,
    4.4143483230717079e-18,
    7.5172963108421048e-18,
    -9.3141788673268834e-19,
    -1.242193275194891e-18,
)


def _chebyshev(t, coefficients):
    """``c[0]/2 + sum c[k] T_k(t)`` by Clenshaw's recurrence."""
    limit = _eps(t) / 64
    used = coefficients[: 1 + max(k for k, c in enumerate(coefficients) if abs(c) > limit)]
    twice = e.mul(_c(t, 2), t)
    b1, b2 = full_like(t, used[-1]), full_like(t, 0)
    for c in reversed(used[1:-1]):
        b1, b2 = e.add(e.sub(e.mul(twice, b1), b2), _c(t, c)), b1
    return e.add(e.sub(e.mul(t, b1), b2), _c(t, used[0] / 2))


def _bessel(x, near, far, odd: bool):
    size = e.abs(x)
    is_near = e.le(size, _c(x, 8))
    x_near, x_far = _where(is_near, size, 1.0), _where(is_near, 16.0, size)
    low = _chebyshev(e.sub(e.mul(x_near, _c(x, 0.25)), _c(x, 1)), near)
    high = e.div(_chebyshev(e.sub(e.div(_c(x, 16), x_far), _c(x, 1)), far), e.sqrt(x_far))
    if odd:
        return e.mul(e.sign(x), _where(is_near, e.mul(low, x_near), high))
    return _where(is_near, low, high)


def bessel_i0e(x: Array) -> Array:
    """exp(-|x|) I0(x)."""
    return _bessel(x, _I0_NEAR, _I0_FAR, False)


def bessel_i1e(x: Array) -> Array:
    """exp(-|x|) I1(x)."""
    return _bessel(x, _I1_NEAR, _I1_FAR, True)


# ---- the rows ------------------------------------------------------------------------------------

for _prim, _fun in (
    (p.igamma_p, igamma),
    (p.igammac_p, igammac),
    (p.igamma_grad_a_p, igamma_grad_a),
    (p.random_gamma_grad_p, random_gamma_grad),
    (p.regularized_incomplete_beta_p, betainc),
    (p.bessel_i0e_p, bessel_i0e),
    (p.bessel_i1e_p, bessel_i1e),
):
    decompositions.add(_prim, widened(_fun))
