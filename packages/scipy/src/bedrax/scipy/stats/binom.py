"""The binomial distribution."""

import bedrax.numpy as jnp
from bedrax.scipy.special import betaln, xlog1py, xlogy
from bedrax.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]


def _logpmf(k, n, p):
    inside = (k >= 0) & (k <= n)
    j, m = jnp.where(inside, k, 0), jnp.where(inside, n, 1)
    log_ways = -jnp.log1p(m) - betaln(m - j + 1, j + 1)
    return jnp.where(inside, log_ways + xlogy(j, p) + xlog1py(m - j, -p), -jnp.inf)


logpmf, pmf = discrete(
    __name__,
    "the binomial distribution",
    {
        "logpmf": """
        >>> print(jax.scipy.stats.binom.logpmf(jnp.array([0, 1, 2]), 2, 0.5).round(3))
        [-1.386 -0.693 -1.386]
        """,
        "pmf": """
        >>> print(jax.scipy.stats.binom.pmf(jnp.array([0, 1, 2]), 2, 0.5).round(3))
        [0.25 0.5  0.25]
        """,
    },
    parameters={"n": "the number of trials", "p": "the probability of a success"},
    logpmf=_logpmf,
)
