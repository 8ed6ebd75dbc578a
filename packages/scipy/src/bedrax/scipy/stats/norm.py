"""The normal distribution."""

import math

from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf, isf = location_scale(
    __name__,
    "the normal distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.norm.logpdf(jnp.array([0., 1.]), loc=1., scale=2.).round(3)
        Array([-1.7370001, -1.6120001], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.norm.pdf(jnp.array([0., 1.]), loc=1., scale=2.).round(3)
        Array([0.17600001, 0.19900002], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.norm.cdf(jnp.array([0., 1.]), loc=1., scale=2.).round(3)
        Array([0.30900002, 0.5       ], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.norm.logcdf(jnp.array([0., 1.]), loc=1., scale=2.).round(3)
        Array([-1.176, -0.693], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.norm.sf(jnp.array([0., 1.]), loc=1., scale=2.).round(3)
        Array([0.69100004, 0.5       ], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.norm.logsf(jnp.array([0., 1.]), loc=1., scale=2.).round(3)
        Array([-0.36900002, -0.693     ], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.norm.ppf(jnp.array([0.25, 0.5]), loc=1., scale=2.).round(3)
        Array([-0.349,  1.   ], dtype=float32)
        >>> jax.scipy.stats.norm.cdf(jax.scipy.stats.norm.ppf(jnp.array([0.25, 0.5]), loc=1., scale=2.), loc=1., scale=2.).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
        "isf": """
        >>> jax.scipy.stats.norm.isf(jnp.array([0.25, 0.5]), loc=1., scale=2.).round(3)
        Array([2.3490002, 1.       ], dtype=float32)
        """,
    },
    logpdf=lambda z: -0.5 * (z * z + math.log(2 * math.pi)),
    cdf=special.ndtr,
    logcdf=special.log_ndtr,
    sf=lambda z: special.ndtr(-z),
    logsf=lambda z: special.log_ndtr(-z),
    ppf=special.ndtri,
    isf=lambda q: -special.ndtri(q),
)
