"""The geometric distribution: trials up to the first success."""

import bedrax.numpy as jnp
from bedrax.scipy.special import xlog1py
from bedrax.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]


def _logpmf(k, p):
    inside = k >= 1
    return jnp.where(inside, xlog1py(jnp.where(inside, k, 1) - 1, -p) + jnp.log(p), -jnp.inf)


logpmf, pmf = discrete(
    __name__,
    "the geometric distribution",
    {
        "logpmf": """
        >>> print(jax.scipy.stats.geom.logpmf(jnp.array([1, 2, 3]), 0.5).round(3))
        [-0.693 -1.386 -2.079]
        """,
        "pmf": """
        >>> print(jax.scipy.stats.geom.pmf(jnp.array([1, 2, 3]), 0.5).round(3))
        [0.5   0.25  0.125]
        """,
    },
    parameters={"p": "the probability of a success"},
    logpmf=_logpmf,
)
