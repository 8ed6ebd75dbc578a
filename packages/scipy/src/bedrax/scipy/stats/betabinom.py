"""The beta-binomial distribution."""

import bedrax.numpy as jnp
from bedrax.scipy.special import betaln
from bedrax.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]


def _logpmf(k, n, a, b):
    k = jnp.floor(k)
    inside = (k >= 0) & (k <= n)
    j, m = jnp.where(inside, k, 0), jnp.where(inside, n, 1)
    log_ways = -jnp.log1p(m) - betaln(m - j + 1, j + 1)
    out = jnp.where(inside, log_ways + betaln(j + a, m - j + b) - betaln(a, b), -jnp.inf)
    return jnp.where((n >= 0) & (a > 0) & (b > 0), out, jnp.nan)


logpmf, pmf = discrete(
    __name__,
    "the beta-binomial distribution",
    {
        "logpmf": """
        >>> print(jax.scipy.stats.betabinom.logpmf(jnp.array([0, 1, 2]), 2, 1., 1.).round(3))
        [-1.0990001 -1.0990001 -1.0990001]
        """,
        "pmf": """
        >>> print(jax.scipy.stats.betabinom.pmf(jnp.array([0, 1, 2]), 2, 1., 1.).round(3))
        [0.333 0.333 0.333]
        """,
    },
    parameters={
        "n": "the number of trials",
        "a": "the first shape of the beta distribution, positive",
        "b": "its second shape, positive",
    },
    logpmf=_logpmf,
)
