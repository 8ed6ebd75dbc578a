"""Entropies, logistic functions, power transforms: logarithms whose limits at 0 are defined."""

from __future__ import annotations

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import axes_tuple, inexact
from bedrax.numpy.logsumexp import logsumexp
from bedrax.scipy.defining import floats, special

__all__ = [
    "boxcox",
    "boxcox1p",
    "entr",
    "expit",
    "kl_div",
    "log_softmax",
    "logit",
    "logsumexp",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
]


@special(lambda out, x, y: jnp.log(y), lambda out, x, y: x / y)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """``x log(y)``, and 0 where x is 0, for every y that is not NaN. The derivatives are ``log(y)`` and ``x / y``.

    Args:
      x, y: arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.xlogy(jnp.array([0., 1.]), jnp.array([0., 2.])).round(3)
      Array([0.   , 0.693], dtype=float32)
    """
    return jnp.where((x == 0) & ~jnp.isnan(y), 0, x * jnp.log(y))


@special(lambda out, x, y: jnp.log1p(y), lambda out, x, y: x / (1 + y))
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """``x log(1 + y)``, and 0 where x is 0, for every y that is not NaN.

    Args:
      x, y: arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.xlog1py(jnp.array([0., 1.]), jnp.array([-1., 1.])).round(3)
      Array([0.   , 0.693], dtype=float32)
    """
    return jnp.where((x == 0) & ~jnp.isnan(y), 0, x * jnp.log1p(y))


@special(lambda out, x: -1 - jnp.log(x))
def entr(x: ArrayLike) -> Array:
    """``-x log(x)``; 0 at 0 and -inf for negative x.

    Examples:

      >>> jax.scipy.special.entr(jnp.array([0., 0.5, 1.]))
      Array([-0.       ,  0.3465736, -0.       ], dtype=float32)
    """
    return jnp.where(x < 0, -jnp.inf, -xlogy.formula(x, x))


@one_program(everywhere=True)
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """``p log(p / q)`` for positive p and q; 0 for p = 0 and q >= 0; elsewhere infinite.

    Args:
      p, q: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.rel_entr(jnp.array([0., 0.5]), jnp.array([0.5, 0.25])).round(3)
      Array([0.   , 0.347], dtype=float32)
    """
    p, q = floats("rel_entr", p, q)
    both = (p > 0) & (q > 0)
    one = lax.full_like(p, 1)
    safe_p, safe_q = jnp.where(both, p, one), jnp.where(both, q, one)
    # NaN stays NaN: it belongs to neither of the other cases.
    out = jnp.where(both, safe_p * (jnp.log(safe_p) - jnp.log(safe_q)), jnp.where((p == 0) & (q >= 0), 0, jnp.inf))
    return jnp.where(jnp.isnan(p) | jnp.isnan(q), jnp.nan, out)


@one_program(everywhere=True)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """``p log(p / q) - p + q``, the terms of the Kullback-Leibler divergence; infinite as `rel_entr`.

    Args:
      p, q: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.kl_div(jnp.array([1., 2.]), jnp.array([1., 1.])).round(3)
      Array([0.   , 0.386], dtype=float32)
    """
    p, q = floats("kl_div", p, q)
    return rel_entr(p, q) - p + q


def expit(x: ArrayLike) -> Array:
    """``1 / (1 + exp(-x))``, the logistic function.

    Examples:

      >>> jax.scipy.special.expit(jnp.array([-1000., 0.]))
      Array([0. , 0.5], dtype=float32)
    """
    (x,) = inexact("expit", x)
    return lax.logistic(x)


@special(lambda out, x: 1 / (x * (1 - x)))
def logit(x: ArrayLike) -> Array:
    """``log(x / (1 - x))``, the inverse of `expit`; NaN outside [0, 1].

    Examples:

      >>> jax.scipy.special.logit(jnp.array([0.5, 1.]))
      Array([ 0., inf], dtype=float32)
    """
    # Near 1/2 the quotient is near 1, and its logarithm would lose digits that 2x - 1 has.
    near = abs(x - 0.5) < 0.25
    delta = jnp.where(near, 2 * x - 1, 0)
    return jnp.where(near, jnp.log1p(delta) - jnp.log1p(-delta), jnp.log(x) - jnp.log1p(-x))


def _box_cox(name: str, log, x: ArrayLike, lmbda: ArrayLike) -> Array:
    x, lmbda = floats(name, x, lmbda)
    log_x = log(x)
    u = lmbda * log_x
    # (exp(u) - 1) / lmbda = log(x) (exp(u) - 1) / u: the series of the quotient where lmbda is small
    small = (abs(u) < 1e-3) | (lmbda == 0)
    safe_u, safe_lmbda = jnp.where(small, 1, u), jnp.where(small, 1, lmbda)
    u = jnp.where(small & jnp.isfinite(u), u, 0)
    series = log_x * (1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5))))
    return jnp.where(small, series, jnp.expm1(safe_u) / safe_lmbda)


@one_program(everywhere=True)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The Box-Cox transform: ``(x**lmbda - 1) / lmbda``, and ``log(x)`` for lmbda = 0; NaN for negative x.

    Args:
      x, lmbda: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.boxcox(jnp.array([1., 4.]), 0.5)
      Array([0., 2.], dtype=float32)
    """
    return _box_cox("boxcox", jnp.log, x, lmbda)


@one_program(everywhere=True)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The Box-Cox transform of ``1 + x``, accurate for small x.

    Args:
      x, lmbda: real arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jax.scipy.special.boxcox1p(jnp.array([0., 3.]), 0.5)
      Array([0., 2.], dtype=float32)
    """
    return _box_cox("boxcox1p", jnp.log1p, x, lmbda)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """``x - logsumexp(x)`` along axes.

    Args:
      x: array; integers become floats.
      axis: the axis or axes to normalize over; None is all.

    Examples:

      >>> jax.scipy.special.log_softmax(jnp.array([0., 0.])).round(3)
      Array([-0.693, -0.693], dtype=float32)
    """
    (x,) = inexact("log_softmax", x)
    return x - logsumexp(x, axis=axes_tuple(axis, x.ndim), keepdims=True)


@one_program(static=("axis",))
def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """``exp(x) / sum(exp(x))`` along axes.

    Args:
      x: array; integers become floats.
      axis: the axis or axes to normalize over; None is all.

    Examples:

      >>> jax.scipy.special.softmax(jnp.array([0., jnp.log(3.)])).round(3)
      Array([0.25      , 0.75000006], dtype=float32)
    """
    (x,) = inexact("softmax", x)
    axes = axes_tuple(axis, x.ndim)
    top = lax.stop_gradient(jnp.max(x, axis=axes, keepdims=True, initial=-jnp.inf))
    y = jnp.exp(x - top)
    return y / jnp.sum(y, axis=axes, keepdims=True)
