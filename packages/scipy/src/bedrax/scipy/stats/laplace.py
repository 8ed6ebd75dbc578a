"""Laplace's distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logpdf", "pdf"]


def _cdf(z):
    tail = 0.5 * jnp.exp(-abs(z))
    return jnp.where(z <= 0, tail, 1 - tail)


logpdf, pdf, cdf = location_scale(
    __name__,
    "the Laplace distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.laplace.logpdf(jnp.array([0., 1.]), loc=1.).round(3)
        Array([-1.6930001, -0.693    ], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.laplace.pdf(jnp.array([0., 1.]), loc=1.).round(3)
        Array([0.18400002, 0.5       ], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.laplace.cdf(jnp.array([0., 1.]), loc=1.).round(3)
        Array([0.18400002, 0.5       ], dtype=float32)
        """,
    },
    logpdf=lambda z: -abs(z) - math.log(2),
    cdf=_cdf,
)
