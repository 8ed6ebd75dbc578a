"""NumPy evaluation of special functions: computed in float64, rounded once.

The C library has the error functions and lgamma. This module implements others; the rest are
composed (`bedrax.lax.decompositions.special`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax.lax.primitives import special as p
from bedrax.numpy_backend.rules.elementwise import checked
from bedrax.numpy_backend.tables import numpy_rules

_F64 = np.dtype(np.float64)


def _in_float64(prim, compute):
    """A row: `compute` takes float64 arrays of one shape. float64 is accurate enough for every `accuracy`."""

    def rule(*args, **params):
        if len({(x.dtype, x.shape) for x in args}) > 1 or args[0].dtype not in accepted:
            checked(prim, *args, **params)
            accepted.add(args[0].dtype)
        dtype = args[0].dtype
        with np.errstate(all="ignore"):
            wide = np.broadcast_arrays(*[x.astype(_F64) for x in args])
            return np.asarray(compute(*wide)).astype(dtype)

    accepted: set[Any] = set()
    numpy_rules.add(prim, rule, "float64")


def _elementwise(function):
    """Return a Python function of a float as a function of arrays."""
    apply = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(apply(x), dtype=_F64)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # a pole, or beyond the largest float
        return math.inf


# ---- inverse error function ----------------------------------------------------------------------

# Wichura 1988, Algorithm AS 241: the quantile of the normal distribution as rational functions, in the middle of
# 0.180625 - q^2, in the tails of sqrt(-log(p)), for p the smaller probability; highest powers first.
_MIDDLE = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
_TAIL = (
    (
        7.7454501427834140764e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258,
        3.64784832476320460504,
        5.76949722146069140550,
        4.63033784615654529590,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940,
        2.05319162663775882187,
        1.0,
    ),
)
_FAR_TAIL = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580,
        5.46378491116411436990,
        6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ),
)


def _ratio(coefficients, r):
    numerator, denominator = coefficients
    return np.polyval(numerator, r) / np.polyval(denominator, r)


def _erf_inv(x):
    q = x / 2
    middle = q * _ratio(_MIDDLE, 0.180625 - q * q)
    r = np.sqrt(-np.log((1 - np.abs(x)) / 2))
    tail = np.where(r <= 5, _ratio(_TAIL, r - 1.6), _ratio(_FAR_TAIL, r - 5))
    z = np.where(np.abs(q) <= 0.425, middle, np.copysign(tail, x))
    return np.where(np.abs(x) == 1, np.copysign(np.inf, x), z / math.sqrt(2))


# ---- digamma, zeta, polygamma --------------------------------------------------------------------

# B_2k / (2k) of the asymptotic series of digamma (Abramowitz and Stegun 6.3.18).
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _digamma(x):
    pole = (x <= 0) & (x == np.floor(x))
    reflect = x <= 0
    # psi(x) = psi(1 - x) - pi cot(pi x); the fraction of x keeps the tangent exact.
    fraction = x - np.round(x)
    y = np.where(reflect, 1 - x, x)
    total = np.where(reflect & ~pole, -np.pi / np.tan(np.pi * np.where(fraction == 0, 0.5, fraction)), 0.0)
    for _ in range(10):  # psi(y) = psi(y + 1) - 1/y, up to where the series is exact
        small = y < 10
        total = np.where(small, total - 1 / y, total)
        y = np.where(small, y + 1, y)
    z = 1 / (y * y)
    series = z * np.polyval(_DIGAMMA[::-1], z)
    return np.where(pole, np.nan, total + np.log(y) - 0.5 / y - series)


def _zeta(x, q):
    """Sum the first terms, then the formula of Euler and Maclaurin (DLMF 25.11.28)."""
    total = np.zeros_like(x)
    # Terms are summed until the tail starts beyond 10; a negative q starts further left.
    left = np.clip(np.where(np.isfinite(q), -np.floor(q), 0), 0, 1000)
    for k in range(10 + int(np.max(left, initial=0))):
        term = np.power(q + k, -x)
        total = np.where(k < 10 + left, total + term, total)
    end = q + 10 + left
    power = np.power(end, -x)
    total = total + power * (end / (x - 1) + 0.5)
    factor = x * power / end  # x (x+1) ... (x+2k-2) end^(-x-2k+1)
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + factor * b / math.factorial(2 * k)
        factor = factor * (x + 2 * k - 1) * (x + 2 * k) / (end * end)
    total = np.where((x > 1) & np.isinf(q) & (q > 0), 0.0, total)
    total = np.where(x == np.inf, np.where(q > 1, 0.0, np.where(q == 1, 1.0, np.inf)), total)
    whole_q, whole_x = q == np.floor(q), x == np.floor(x)
    # Poles are infinite; powers of negative numbers need whole exponents.
    even = np.mod(x, 2) == 0
    total = np.where((q <= 0) & whole_q, np.where(even, np.inf, np.nan), total)
    total = np.where((q <= 0) & ~(whole_q | whole_x), np.nan, total)
    total = np.where(x == 1, np.inf, total)
    return np.where((x < 1) | np.isnan(x) | np.isnan(q), np.nan, total)


def _polygamma(n, x):
    whole = (n >= 0) & (n == np.floor(n)) & np.isfinite(n)
    order = np.where(whole, n, 1.0)
    sign = np.where(np.mod(order, 2) == 0, -1.0, 1.0)
    value = sign * np.exp(_elementwise(_lgamma)(order + 1)) * _zeta(order + 1, x)
    return np.where(whole, np.where(n == 0, _digamma(x), value), np.nan)


_in_float64(p.erf_p, _elementwise(math.erf))
_in_float64(p.erfc_p, _elementwise(math.erfc))
_in_float64(p.lgamma_p, _elementwise(_lgamma))
_in_float64(p.erf_inv_p, _erf_inv)
_in_float64(p.digamma_p, _digamma)
_in_float64(p.zeta_p, _zeta)
_in_float64(p.polygamma_p, _polygamma)
