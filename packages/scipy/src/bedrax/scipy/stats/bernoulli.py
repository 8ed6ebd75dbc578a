"""Bernoulli's distribution of 0 and 1."""

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.scipy.special import xlog1py, xlogy
from bedrax.scipy.stats.families import discrete

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def _logpmf(k, p):
    inside = (k == 0) | (k == 1)
    k = jnp.where(inside, k, 0)
    return jnp.where(inside, xlogy(k, p) + xlog1py(1 - k, -p), -jnp.inf)


def _cdf(k, p):
    out = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(jnp.isnan(k) | ~((p >= 0) & (p <= 1)), jnp.nan, out)


def _ppf(q, p):
    inside = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
    return jnp.where(inside, jnp.where(q <= 1 - p, lax.full_like(q, 0), lax.full_like(q, 1)), jnp.nan)


logpmf, pmf, cdf, ppf = discrete(
    __name__,
    "the Bernoulli distribution",
    {
        "logpmf": """
        >>> print(jax.scipy.stats.bernoulli.logpmf(jnp.array([0, 1]), 0.25).round(3))
        [-0.28800002 -1.386     ]
        """,
        "pmf": """
        >>> print(jax.scipy.stats.bernoulli.pmf(jnp.array([0, 1]), 0.25).round(3))
        [0.75000006 0.25      ]
        """,
        "cdf:k!": """
        >>> print(jax.scipy.stats.bernoulli.cdf(jnp.array([0, 1]), 0.25).round(3))
        [0.75000006 1.        ]
        """,
        "ppf:q!": """
        >>> jax.scipy.stats.bernoulli.ppf(jnp.array([0.25, 0.5]), 0.25).round(3)
        Array([0., 0.], dtype=float32)
        """,
    },
    parameters={"p": "the probability of 1"},
    logpmf=_logpmf,
    cdf=_cdf,
    ppf=_ppf,
)
