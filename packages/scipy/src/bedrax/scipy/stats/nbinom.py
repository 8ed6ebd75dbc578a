"""The negative binomial distribution: failures before the n-th success."""

import bedrax.numpy as jnp
from bedrax.scipy.special import betaln, xlog1py, xlogy
from bedrax.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]


def _logpmf(k, n, p):
    inside = k >= 0
    k = jnp.where(inside, k, 0)
    log_ways = -jnp.log(n + k) - betaln(k + 1, n)
    return jnp.where(inside, log_ways + xlogy(n, p) + xlog1py(k, -p), -jnp.inf)


logpmf, pmf = discrete(
    __name__,
    "the negative binomial distribution",
    {
        "logpmf": """
        >>> print(jax.scipy.stats.nbinom.logpmf(jnp.array([0, 1, 2]), 2, 0.5).round(3))
        [-1.386 -1.386 -1.674]
        """,
        "pmf": """
        >>> print(jax.scipy.stats.nbinom.pmf(jnp.array([0, 1, 2]), 2, 0.5).round(3))
        [0.25       0.25       0.18800001]
        """,
    },
    parameters={"n": "the number of successes", "p": "the probability of a success"},
    logpmf=_logpmf,
)
