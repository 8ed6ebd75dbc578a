"""Dirichlet's distribution."""

from __future__ import annotations

import bedrax.numpy as jnp
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import inexact
from bedrax.scipy.defining import widened
from bedrax.scipy.special import gammaln, xlogy

__all__ = ["logpdf", "pdf"]


@one_program(everywhere=True)
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: points, of shape ``(n, ...)`` for n categories, or ``(n - 1, ...)``: the last coordinate is 1 minus their sum.
        The density is 0 where coordinates are not positive or do not add up to 1.
      alpha: the concentrations, of shape ``(n,)``.

    Raises:
      ValueError: the shapes do not fit.

    Examples:

      >>> jax.scipy.stats.dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1., 2., 3.])).round(3)
      Array(1.5040001, dtype=float32)
    """
    return _evaluated("dirichlet.logpdf", _logpdf, x, alpha)


def _evaluated(name: str, formula, x, alpha) -> Array:
    x, alpha = inexact(name, x, alpha)
    # The given coordinates are rounded: they add up to 1 as far as their dtype can tell.
    tolerance = 10 * alpha.size * float(dtypes.finfo(x.dtype).eps)
    return widened(lambda x, alpha: formula(x, alpha, tolerance))(x, alpha)


def _logpdf(x, alpha, tolerance):
    if alpha.ndim != 1:
        raise ValueError(f"dirichlet: alpha is a vector, got shape {alpha.shape}")
    n = alpha.shape[0]
    if x.ndim == 0 or not (dims.definitely_equal(x.shape[0], n) or dims.definitely_equal(x.shape[0] + 1, n)):
        raise ValueError(f"dirichlet: axis 0 of x is as long as alpha, or one less; got {x.shape} and {alpha.shape}")
    if not dims.definitely_equal(x.shape[0], n):
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    inside = jnp.all(x >= 0, axis=0) & (abs(1 - jnp.sum(x, axis=0)) < tolerance)
    column = alpha.reshape((n,) + (1,) * (x.ndim - 1))
    powers = jnp.sum(xlogy(column - 1, jnp.where(inside, x, 0.5)), axis=0)
    normalizer = jnp.sum(gammaln(alpha)) - gammaln(jnp.sum(alpha))
    return jnp.where(inside, powers - normalizer, -jnp.inf)


@one_program(everywhere=True)
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density at `x`; arguments as for `logpdf`.

    Examples:

      >>> jax.scipy.stats.dirichlet.pdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1., 2., 3.])).round(3)
      Array(4.5, dtype=float32)
    """
    return _evaluated("dirichlet.pdf", lambda *args: jnp.exp(_logpdf(*args)), x, alpha)
