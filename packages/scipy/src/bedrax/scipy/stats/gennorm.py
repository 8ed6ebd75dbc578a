"""The generalized normal distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logpdf", "pdf"]


def _logpdf(x, beta):
    return jnp.log(beta) - math.log(2) - special.gammaln(1 / beta) - abs(x) ** beta


def _cdf(x, beta):
    # At 0 the derivative through the incomplete gamma function would be infinity times zero.
    centre = x == 0
    far = jnp.where(centre, 1, x)
    tail = 0.5 * special.gammaincc(1 / beta, abs(far) ** beta)
    near = 0.5 + x * jnp.exp(_logpdf(jnp.zeros_like(x), beta))
    return jnp.where(centre, near, jnp.where(x < 0, tail, 1 - tail))


logpdf, pdf, cdf = location_scale(
    __name__,
    "the generalized normal distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.gennorm.logpdf(jnp.array([0., 1.]), 1.5).round(3)
        Array([-0.591    , -1.5910001], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.gennorm.pdf(jnp.array([0., 1.]), 1.5).round(3)
        Array([0.554     , 0.20400001], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.gennorm.cdf(jnp.array([0., 1.]), 1.5).round(3)
        Array([0.5      , 0.8880001], dtype=float32)
        """,
    },
    parameters={"beta": "the shape, positive: 1 gives the Laplace distribution"},
    scaled=False,
    logpdf=_logpdf,
    cdf=_cdf,
)
