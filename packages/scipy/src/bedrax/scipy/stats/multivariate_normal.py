"""The normal distribution of vectors."""

from __future__ import annotations

import math

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import aligned, inexact
from bedrax.scipy.defining import widened

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density at `x`.

    Args:
      x: points, of shape ``[..., n]``.
      mean: of shape ``[..., n]``, or a scalar.
      cov: positive definite matrices of shape ``[..., n, n]``; a scalar is the variance of every element, and then
        elements are taken one by one. NaN where a matrix is not positive definite.
      allow_singular: not supported.

    Raises:
      NotImplementedError: `allow_singular` is given.
      ValueError: `mean` or `cov` has a shape that does not fit.

    Examples:

      >>> jax.scipy.stats.multivariate_normal.logpdf(jnp.array([0., 1.]), jnp.zeros(2), jnp.eye(2)).round(3)
      Array(-2.338, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError("multivariate_normal.logpdf: allow_singular is not supported; leave it out.")
    return _evaluated(x, mean, cov, log=True)


@one_program(static=("log",), everywhere=True)
def _evaluated(x, mean, cov, *, log):
    formula = _logpdf if log else lambda *args: jnp.exp(_logpdf(*args))
    return widened(formula)(*inexact("multivariate_normal.logpdf", x, mean, cov))


def _logpdf(x, mean, cov):
    if mean.ndim == 0:  # every element is a normal variable of its own
        if cov.ndim:
            raise ValueError(f"multivariate_normal.logpdf: for a scalar mean cov is a scalar, got shape {cov.shape}")
        return -0.5 * ((x - mean) ** 2 / cov + math.log(2 * math.pi) + jnp.log(cov))
    n = mean.shape[-1]
    if cov.ndim == 0:
        y = (x - mean) / jnp.sqrt(cov)
        return -0.5 * jnp.sum(y * y, axis=-1) - n / 2 * (math.log(2 * math.pi) + jnp.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal.logpdf: expected cov of shape [..., {n}, {n}] for mean of shape {mean.shape}; got {cov.shape}"
        )
    factor = lax.cholesky(cov)
    x, mean = aligned(x, mean), aligned(mean, x)
    y = x - mean
    batch = jnp.broadcast_shapes(y.shape[:-1], cov.shape[:-2])
    y = jnp.broadcast_to(y, (*batch, n))
    broad = jnp.broadcast_to(factor, (*batch, n, n))
    y = lax.triangular_solve(broad, y[..., None], left_side=True, lower=True)[..., 0]
    log_root = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * jnp.sum(y * y, axis=-1) - n / 2 * math.log(2 * math.pi) - log_root


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density at `x`; arguments as for `logpdf`.

    Examples:

      >>> jax.scipy.stats.multivariate_normal.pdf(jnp.array([0., 1.]), jnp.zeros(2), jnp.eye(2)).round(3)
      Array(0.097, dtype=float32)
    """
    return _evaluated(x, mean, cov, log=False)
