"""The gamma function and its family: beta, incomplete gamma and beta, factorials, polygamma, zeta."""

from __future__ import annotations

import math

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import aligned, array, concrete_int, inexact
from bedrax.scipy.defining import floats, special, widened

__all__ = [
    "bernoulli",
    "beta",
    "betainc",
    "betaln",
    "comb",
    "digamma",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "loggamma",
    "multigammaln",
    "poch",
    "polygamma",
    "zeta",
]


def gammaln(x: ArrayLike) -> Array:
    """``log(abs(gamma(x)))`` of real x; infinite at 0, -1, -2, ...

    Examples:

      >>> jax.scipy.special.gammaln(jnp.array([1., 100.])).round(2)
      Array([  0.  , 359.13], dtype=float32)
    """
    return lax.lgamma(*floats("gammaln", x))


@one_program(everywhere=True)
def gammasgn(x: ArrayLike) -> Array:
    """The sign of ``gamma(x)``, with the sign of the zero at 0 and -0; NaN at the poles -1, -2, ... and at -inf.

    Examples:

      >>> jax.scipy.special.gammasgn(jnp.array([0.5, -0.5]))
      Array([ 1., -1.], dtype=float32)
    """
    (x,) = floats("gammasgn", x)
    floor = lax.floor(x)
    alternating = jnp.where(floor % 2 == 0, 1, -1).astype(x.dtype)
    negative = jnp.where((x == floor) | jnp.isinf(x), jnp.nan, alternating)
    return jnp.where(
        x == 0, jnp.copysign(lax.full_like(x, 1), x), jnp.where(x < 0, negative, jnp.where(jnp.isnan(x), x, 1))
    )


@special(lambda out, x: out * lax.digamma(x))
def gamma(x: ArrayLike) -> Array:
    r"""The gamma function, :math:`\int_0^\infty t^{x-1} e^{-t} dt`, of real x; NaN at -1, -2, ...

    Examples:

      >>> jax.scipy.special.gamma(jnp.array([1., 5., 0.5])).round(3)
      Array([ 1.       , 24.000002 ,  1.7720001], dtype=float32)
    """
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)  # DLMF 5.11.1


@one_program(everywhere=True)
def _complex_loggamma(z):
    """The principal branch: for Re z < 1/2 by reflection (DLMF 5.5.3), for small z from z + 9 (DLMF 5.5.1)."""
    reflect = z.real < 0.5
    w = jnp.where(reflect, 1 - z, z)
    total = lax.full_like(w, 0)
    for k in range(9):
        total = total - jnp.log(w + k)
    w = w + 9
    square = 1 / (w * w)
    tail = lax.full_like(w, 0)
    for c in reversed(_STIRLING):
        tail = tail * square + c
    total = total + (w - 0.5) * jnp.log(w) - w + 0.5 * math.log(2 * math.pi) + tail / w
    # log(sin(pi z)), continued from the real axis into the upper half plane; below, by conjugation.
    lower = jnp.signbit(z.imag)
    u = jnp.where(lower, jnp.conj(z), z)
    sine = lax.complex(jnp.pi * u.imag - math.log(2), jnp.pi * (0.5 - u.real))
    sine = sine + jnp.log1p(-jnp.exp(lax.complex(-2 * jnp.pi * u.imag, 2 * jnp.pi * (u.real % 1))))
    sine = jnp.where(lower, jnp.conj(sine), sine)
    return jnp.where(reflect, math.log(math.pi) - sine - total, total)


@one_program(everywhere=True)
def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function, real or complex.

    For complex x it is the branch that is real on the positive axis and has its cut on the negative one; for
    negative real x it is NaN.

    Examples:

      >>> jax.scipy.special.loggamma(jnp.array([1., 4.])).round(3)
      Array([0.   , 1.792], dtype=float32)
    """
    (x,) = inexact("loggamma", x)
    if dtypes.is_complex(x.dtype):
        return _complex_loggamma(x)
    return jnp.where(x < 0, jnp.nan, lax.lgamma(x))


def digamma(x: ArrayLike) -> Array:
    """The derivative of ``log(gamma(x))``.

    Examples:

      >>> jax.scipy.special.digamma(jnp.array([1., 2.])).round(3)
      Array([-0.577,  0.423], dtype=float32)
    """
    return lax.digamma(*floats("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma`.

    Args:
      n: integers >= 0; NaN for others.
      x: floats.

    Raises:
      TypeError: `n` is not of integer dtype.

    Examples:

      >>> jax.scipy.special.polygamma(1, jnp.array([1., 2.])).round(3)
      Array([1.6450001 , 0.64500004], dtype=float32)
    """
    n = array("polygamma", n)
    if not dtypes.is_integer(n.dtype):
        raise TypeError(f"polygamma: n holds integers, got {n.dtype}")
    (x,) = floats("polygamma", x)
    return lax.polygamma(*jnp.broadcast_arrays(lax.convert_to(n, x.dtype, n.aval.weak_type), x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    r"""Hurwitz's zeta function, :math:`\sum_{k \ge 0} (k + q)^{-x}`, for x > 1.

    Args:
      x: the exponent.
      q: the shift.

    Raises:
      NotImplementedError: without `q` (Riemann's function, also of x < 1); pass q=1 for x > 1.

    Examples:

      >>> jax.scipy.special.zeta(jnp.array([2., 4.]), 1.).round(3)
      Array([1.6450001, 1.082    ], dtype=float32)
    """
    if q is None:
        raise NotImplementedError("zeta: Riemann's zeta function is not implemented; for x > 1 it is that with q=1")
    return lax.zeta(*floats("zeta", x, q))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function.

    Args:
      a: positive parameter.
      x: the upper limit of the integral, not negative.

    Examples:

      >>> jax.scipy.special.gammainc(1., jnp.array([0., 1.])).round(3)
      Array([0.   , 0.632], dtype=float32)
    """
    return lax.igamma(*floats("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, ``1 - gammainc(a, x)`` without cancellation.

    Args:
      a: positive parameter.
      x: the lower limit of the integral, not negative.

    Examples:

      >>> jax.scipy.special.gammaincc(1., jnp.array([0., 1.])).round(3)
      Array([1.        , 0.36800003], dtype=float32)
    """
    return lax.igammac(*floats("gammaincc", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function; differentiable by x.

    Args:
      a, b: positive parameters.
      x: in [0, 1]; NaN outside.

    Examples:

      >>> jax.scipy.special.betainc(2., 2., jnp.array([0., 0.5, 1.]))
      Array([0.       , 0.5000005, 1.       ], dtype=float32)
    """
    return lax.betainc(*floats("betainc", a, b, x))


def _stirling_rest(x):
    """``lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2`` for x >= 8."""
    square = 1 / (x * x)
    total = lax.full_like(x, 0)
    for c in reversed(_STIRLING):
        total = total * square + c
    return total / x


@special(lambda out, a, b: lax.digamma(a) - lax.digamma(a + b), lambda out, a, b: lax.digamma(b) - lax.digamma(a + b))
@widened
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """``log(abs(beta(a, b)))``.

    Args:
      a, b: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.betaln(2., 3.)
      Array(-2.4849074, dtype=float32, weak_type=True)
    """
    # The logarithms of gamma(b) and gamma(a + b) nearly cancel for large b: subtract Stirling's formulas term by term.
    low, high = lax.min(a, b), lax.max(a, b)
    large = high >= 8
    y = jnp.where(large, high, 8)
    ratio = low / y
    bulk = -(y - 0.5) * jnp.log1p(ratio) - low * (jnp.log(jnp.where(low + y > 0, low + y, 1)) - 1)
    cancelled = bulk + _stirling_rest(y) - _stirling_rest(jnp.where(low + y > 0, low + y, 1))
    both = lax.lgamma(high) - lax.lgamma(low + high)
    return lax.lgamma(low) + jnp.where(large & (low > 0), cancelled, both)


@one_program(everywhere=True)
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function, ``gamma(a) gamma(b) / gamma(a + b)``.

    Args:
      a, b: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.beta(2., 3.)
      Array(0.08333327, dtype=float32)
    """
    a, b = floats("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln.formula(a, b))


@one_program(static=("exact",), everywhere=True)
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """``gamma(n + 1)``, and 0 for negative n.

    Args:
      n: real array or scalar; integers become floats.
      exact: must be False.

    Raises:
      NotImplementedError: with `exact`: arrays hold no unbounded integers.

    Examples:

      >>> jax.scipy.special.factorial(jnp.array([0, 3, 5])).round(3)
      Array([  1.       ,   6.0000005, 120.00001  ], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial: exact=True needs integers without bound; use math.factorial.")
    (n,) = floats("factorial", n)
    rounded = jnp.where(n == jnp.round(n), jnp.round(gamma.formula(n + 1)), gamma.formula(n + 1))
    out = jnp.where(n < 0, 0, rounded if dtypes.finfo(n.dtype).bits >= 32 else gamma.formula(n + 1))
    return lax.convert_to(out, n.dtype, n.aval.weak_type)


@one_program(static=("repetition",), everywhere=True)
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k out of N.

    Real arguments are interpolated by gamma functions; 0 where ``k > N`` or one of them is negative.

    Args:
      N, k: real arrays or scalars, broadcast against each other. Integers become floats.
      repetition: whether one thing may be chosen several times; then k are chosen out of ``N + k - 1``.

    Examples:

      >>> jax.scipy.special.comb(5, jnp.array([1, 2])).round(3)
      Array([ 5., 10.], dtype=float32)
    """
    N, k = floats("comb", N, k)
    if repetition:
        return jnp.where((N == 0) & (k == 0), 1, comb(N + k - 1, k))
    inside = (k <= N) & (N >= 0) & (k >= 0)
    n, j = jnp.where(inside, N, 1), jnp.where(inside, k, 0)
    out = jnp.exp(-jnp.log1p(n) - betaln.formula(n - j + 1, j + 1))
    whole = (n == jnp.round(n)) & (j == jnp.round(j)) & (out < 1 / float(dtypes.finfo(n.dtype).eps))
    out = out + lax.stop_gradient(jnp.where(whole, jnp.round(out) - out, 0))
    return jnp.where(inside, out, 0)


@special(lambda out, z, m: out * (lax.digamma(z + m) - lax.digamma(z)), lambda out, z, m: out * lax.digamma(z + m))
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial, ``gamma(z + m) / gamma(z)``; NaN where z is a pole.

    Args:
      z, m: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.poch(3., jnp.array([0., 2.])).round(3)
      Array([ 1.      , 12.000001], dtype=float32)
    """
    signs = gammasgn(z + m) * gammasgn(z)
    return jnp.where(m == 0, 1, signs * jnp.exp(lax.lgamma(z + m) - lax.lgamma(z)))


@one_program(static=("d",))
def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the gamma function of d-dimensional statistics, for ``a > (d - 1) / 2``.

    Args:
      a: floats.
      d: the dimension, a Python integer.

    Examples:

      >>> jax.scipy.special.multigammaln(jnp.array([3.]), 2).round(3)
      Array([1.5500001], dtype=float32)
    """
    d = concrete_int(d, "The argument d of multigammaln must be known when tracing.")
    (a,) = floats("multigammaln", a)
    steps = np.arange(d, dtype=np.float64) / 2
    terms = lax.lgamma(a[..., None] - aligned(steps.astype(a.dtype), a[..., None]))
    return jnp.sum(terms, axis=-1) + d * (d - 1) / 4 * math.log(math.pi)


_EVEN_ZETA = {2: math.pi**2 / 6, 4: math.pi**4 / 90, 6: math.pi**6 / 945}


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers ``B_0 ... B_n``, with ``B_1 = -1/2``.

    Args:
      n: a Python integer >= 0.

    Examples:

      >>> jax.scipy.special.bernoulli(4).round(3)
      Array([ 1.        , -0.5       ,  0.16700001,  0.        , -0.033     ],
            dtype=float32)
    """
    n = concrete_int(n, "The argument n of bernoulli determines a shape.")
    if n < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {n}")
    out = np.zeros(max(n, 1) + 1)
    out[:2] = 1, -0.5
    two_pi = 2 * math.pi
    factor = 2.0
    for k in range(2, n + 1, 2):  # DLMF 25.6.2: |B_k| = 2 k! zeta(k) / (2 pi)^k
        factor *= (k - 1) / two_pi * (k / two_pi)
        zeta_k = _EVEN_ZETA.get(k) or math.fsum(j**-k for j in range(1, 200))
        out[k] = factor * zeta_k * (1 if k % 4 == 2 else -1)
    return jnp.asarray(out[: n + 1], dtypes.default_float_dtype())
