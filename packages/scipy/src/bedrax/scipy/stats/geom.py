"""The geometric distribution: trials up to the first success."""

import bedrax.numpy as jnp
from bedrax.scipy.special import xlog1py
from bedrax.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]


def _logpmf(k, p):
    inside = k >= 1
    return jnp.where(inside, xlog1py(jnp.where(inside, k, 1) - 1, -p) + jnp.log(p), -jnp.inf)


logpmf, pmf = discrete(__name__, "the geometric distribution", "logpmf pmf", parameters="p", logpmf=_logpmf)
