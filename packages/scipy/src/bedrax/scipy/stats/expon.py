"""The exponential distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the exponential distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.expon.logpdf(jnp.array([0., 1.]), scale=2.).round(3)
        Array([-0.693    , -1.1930001], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.expon.pdf(jnp.array([0., 1.]), scale=2.).round(3)
        Array([0.5  , 0.303], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.expon.cdf(jnp.array([0., 1.]), scale=2.).round(3)
        Array([0.   , 0.393], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.expon.logcdf(jnp.array([0., 1.]), scale=2.).round(3)
        Array([  -inf, -0.933], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.expon.sf(jnp.array([0., 1.]), scale=2.).round(3)
        Array([1.        , 0.60700005], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.expon.logsf(jnp.array([0., 1.]), scale=2.).round(3)
        Array([-0. , -0.5], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.expon.ppf(jnp.array([0.25, 0.5]), scale=2.).round(3)
        Array([0.57500005, 1.386     ], dtype=float32)
        >>> jax.scipy.stats.expon.cdf(jax.scipy.stats.expon.ppf(jnp.array([0.25, 0.5]), scale=2.), scale=2.).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
    },
    support=lambda: (0, math.inf, 1),
    logpdf=lambda z: -z,
    cdf=lambda z: -jnp.expm1(-z),
    logcdf=lambda z: jnp.where(z > 0.7, jnp.log1p(-jnp.exp(-z)), jnp.log(-jnp.expm1(-z))),
    logsf=lambda z: -z,
    ppf=lambda q: -jnp.log1p(-q),
)
