"""Gumbel's distribution of maxima."""

from __future__ import annotations

import bedrax.numpy as jnp
from bedrax.core.array import Array
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def log_complement(z: Array) -> Array:
    """``log(1 - exp(-exp(z)))``."""
    small, large = z < -20, z > -0.36
    near = jnp.log(-jnp.expm1(-jnp.exp(jnp.where(small | large, -1, z))))
    far = jnp.log1p(-jnp.exp(-jnp.exp(jnp.where(large, z, 0))))
    # exp(z) is the whole difference where z is very small, and may vanish.
    return jnp.where(small, z - jnp.exp(z) / 2, jnp.where(large, far, near))


def log_density(z: Array) -> Array:
    """``z - exp(z)``, without a difference of infinities."""
    return jnp.where(z == jnp.inf, -jnp.inf, z - jnp.exp(z))


logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the right-skewed Gumbel distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.gumbel_r.logpdf(jnp.array([0., 1.])).round(3)
        Array([-1.   , -1.368], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.gumbel_r.pdf(jnp.array([0., 1.])).round(3)
        Array([0.36800003, 0.25500003], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.gumbel_r.cdf(jnp.array([0., 1.])).round(3)
        Array([0.36800003, 0.69200003], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.gumbel_r.logcdf(jnp.array([0., 1.])).round(3)
        Array([-1.        , -0.36800003], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.gumbel_r.sf(jnp.array([0., 1.])).round(3)
        Array([0.632     , 0.30800003], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.gumbel_r.logsf(jnp.array([0., 1.])).round(3)
        Array([-0.45900002, -1.1780001 ], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.gumbel_r.ppf(jnp.array([0.25, 0.5])).round(3)
        Array([-0.32700002,  0.367     ], dtype=float32)
        >>> jax.scipy.stats.gumbel_r.cdf(jax.scipy.stats.gumbel_r.ppf(jnp.array([0.25, 0.5]))).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
    },
    first="p",
    logpdf=lambda z: log_density(-z),
    logcdf=lambda z: -jnp.exp(-z),
    sf=lambda z: -jnp.expm1(-jnp.exp(-z)),
    logsf=lambda z: log_complement(-z),
    ppf=lambda q: -jnp.log(-jnp.log(q)),
)
