"""Gumbel's distribution of maxima."""

from __future__ import annotations

import bedrax.numpy as jnp
from bedrax.core.array import Array
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def log_complement(u: Array) -> Array:
    """``log(1 - exp(-u))`` for u >= 0."""
    large = u > 0.7
    return jnp.where(large, jnp.log1p(-jnp.exp(-u)), jnp.log(-jnp.expm1(-jnp.where(large, 0.7, u))))


logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the right-skewed Gumbel distribution",
    "logpdf pdf cdf logcdf sf logsf ppf",
    first="p",
    logpdf=lambda z: -z - jnp.exp(-z),
    logcdf=lambda z: -jnp.exp(-z),
    sf=lambda z: -jnp.expm1(-jnp.exp(-z)),
    logsf=lambda z: log_complement(jnp.exp(-z)),
    ppf=lambda q: -jnp.log(-jnp.log(q)),
)
