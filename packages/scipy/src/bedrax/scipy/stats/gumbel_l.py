"""Gumbel's distribution of minima."""

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale
from bedrax.scipy.stats.gumbel_r import log_complement, log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the left-skewed Gumbel distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.gumbel_l.logpdf(jnp.array([0., 1.])).round(3)
        Array([-1.   , -1.718], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.gumbel_l.pdf(jnp.array([0., 1.])).round(3)
        Array([0.36800003, 0.179     ], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.gumbel_l.cdf(jnp.array([0., 1.])).round(3)
        Array([0.632, 0.934], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.gumbel_l.logcdf(jnp.array([0., 1.])).round(3)
        Array([-0.45900002, -0.068     ], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.gumbel_l.sf(jnp.array([0., 1.])).round(3)
        Array([0.36800003, 0.066     ], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.gumbel_l.logsf(jnp.array([0., 1.])).round(3)
        Array([-1.       , -2.7180002], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.gumbel_l.ppf(jnp.array([0.25, 0.5])).round(3)
        Array([-1.246, -0.367], dtype=float32)
        >>> jax.scipy.stats.gumbel_l.cdf(jax.scipy.stats.gumbel_l.ppf(jnp.array([0.25, 0.5]))).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
    },
    first="p",
    logpdf=log_density,
    cdf=lambda z: -jnp.expm1(-jnp.exp(z)),
    logcdf=lambda z: log_complement(z),
    logsf=lambda z: -jnp.exp(z),
    ppf=lambda q: jnp.log(-jnp.log1p(-q)),
)
