"""Cauchy's distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale, log1p_of_square

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _tail(z):
    """The probability of a value above z: no cancellation, since ``arctan2(1, z) = pi / 2 - arctan(z)``."""
    return jnp.arctan2(1, z) / math.pi


def _quantile(q):
    # tan near its pole is a quotient: -cos / sin of the angle from the nearer end.
    return jnp.where(q == 0.5, 0, -1 / jnp.tan(math.pi * jnp.where(q == 0.5, 0.25, q)))


logpdf, pdf, cdf, logcdf, sf, logsf, ppf, isf = location_scale(
    __name__,
    "the Cauchy distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.cauchy.logpdf(jnp.array([0., 1.])).round(3)
        Array([-1.1450001, -1.838    ], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.cauchy.pdf(jnp.array([0., 1.])).round(3)
        Array([0.31800002, 0.15900001], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.cauchy.cdf(jnp.array([0., 1.])).round(3)
        Array([0.5       , 0.75000006], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.cauchy.logcdf(jnp.array([0., 1.])).round(3)
        Array([-0.693     , -0.28800002], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.cauchy.sf(jnp.array([0., 1.])).round(3)
        Array([0.5 , 0.25], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.cauchy.logsf(jnp.array([0., 1.])).round(3)
        Array([-0.693, -1.386], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.cauchy.ppf(jnp.array([0.25, 0.5])).round(3)
        Array([-1.,  0.], dtype=float32)
        >>> jax.scipy.stats.cauchy.cdf(jax.scipy.stats.cauchy.ppf(jnp.array([0.25, 0.5]))).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
        "isf": """
        >>> jax.scipy.stats.cauchy.isf(jnp.array([0.25, 0.5])).round(3)
        Array([1., 0.], dtype=float32)
        """,
    },
    logpdf=lambda z: -math.log(math.pi) - log1p_of_square(z),
    cdf=lambda z: _tail(-z),
    sf=_tail,
    logcdf=lambda z: jnp.where(z > 0, jnp.log1p(-_tail(z)), jnp.log(_tail(-z))),
    logsf=lambda z: jnp.where(z < 0, jnp.log1p(-_tail(-z)), jnp.log(_tail(z))),
    ppf=lambda q: jnp.where(q > 0.5, -_quantile(1 - q), _quantile(q)),
    isf=lambda q: jnp.where(q > 0.5, _quantile(1 - q), -_quantile(q)),
)
