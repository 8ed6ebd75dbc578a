"""Gumbel's distribution of minima."""

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale
from bedrax.scipy.stats.gumbel_r import log_complement

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the left-skewed Gumbel distribution",
    "logpdf pdf cdf logcdf sf logsf ppf",
    first="p",
    logpdf=lambda z: z - jnp.exp(z),
    cdf=lambda z: -jnp.expm1(-jnp.exp(z)),
    logcdf=lambda z: log_complement(jnp.exp(z)),
    logsf=lambda z: -jnp.exp(z),
    ppf=lambda q: jnp.log(-jnp.log1p(-q)),
)
