"""Poisson's distribution."""

from __future__ import annotations

import math

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.scipy.defining import floats, widened
from bedrax.scipy.special import gammaincc, gammaln, xlogy
from bedrax.scipy.stats.families import discrete, whole

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def _logpmf(k, mu):
    inside = (k >= 0) & whole(k)
    k = jnp.where(inside, k, 0)
    return jnp.where(inside, xlogy(k, mu) - gammaln(k + 1) - mu, -jnp.inf)


def _cdf(k, mu):
    inside = k >= 0
    return jnp.where(inside, gammaincc(jnp.floor(jnp.where(inside, k, 0)) + 1, mu), 0)


def _entropy(mu):
    """The sum of ``-p log(p)`` if mu is small, and the expansion in 1 / mu otherwise. The sum needs 220 terms at most.

    The logarithms of p lose digits as mu grows. For floats narrower than float64, the expansion
    has all digits from 25 on.
    """
    limit = 100 if mu.dtype == np.float64 else 25
    low = mu <= limit
    m = jnp.where(low & (mu > 0), mu, 1)
    k = np.arange(220).astype(mu.dtype)
    logarithms = _logpmf(k, m[..., None])  # they are finite, also where the probability underflows
    near = -jnp.sum(jnp.exp(logarithms) * logarithms, axis=-1)
    r = 1 / jnp.where(low, limit, mu)
    far = 0.5 * (jnp.log(2 * math.pi / r) + 1) - r * (
        1 / 12 + r * (1 / 24 + r * (19 / 360 + r * (9 / 80 + r * 863 / 2520)))
    )
    out = jnp.where(mu == 0, 0, jnp.where(low, near, far))
    return jnp.where(mu >= 0, out, lax.full_like(mu, jnp.nan))


logpmf, pmf, cdf = discrete(
    __name__,
    "the Poisson distribution",
    {
        "logpmf": """
        >>> print(jax.scipy.stats.poisson.logpmf(jnp.array([0, 1, 2]), 1.5).round(3))
        [-1.5000001 -1.095     -1.3820001]
        """,
        "pmf": """
        >>> print(jax.scipy.stats.poisson.pmf(jnp.array([0, 1, 2]), 1.5).round(3))
        [0.223      0.335      0.25100002]
        """,
        "cdf": """
        >>> print(jax.scipy.stats.poisson.cdf(jnp.array([0, 1, 2]), 1.5).round(3))
        [0.223 0.558 0.809]
        """,
    },
    parameters={"mu": "the mean"},
    logpmf=_logpmf,
    cdf=_cdf,
)


@one_program(arrays=("loc",), everywhere=True)
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy of the Poisson distribution, in nats.

    Args:
      mu: the mean; NaN where it is negative.
      loc: the shift of the distribution, which does not change its entropy.

    Returns:
      An array of floats of the common shape of both.

    Examples:

      >>> jax.scipy.stats.poisson.entropy(jnp.array([1., 1.5])).round(3)
      Array([1.3050001, 1.539    ], dtype=float32)
    """
    return widened(_entropy)(floats("poisson.entropy", mu, loc)[0])
