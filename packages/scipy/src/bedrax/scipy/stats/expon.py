"""The exponential distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the exponential distribution",
    "logpdf pdf cdf logcdf sf logsf ppf",
    support=lambda: (0, math.inf, 1),
    logpdf=lambda z: -z,
    cdf=lambda z: -jnp.expm1(-z),
    logcdf=lambda z: jnp.where(z > 0.7, jnp.log1p(-jnp.exp(-z)), jnp.log(-jnp.expm1(-z))),
    logsf=lambda z: -z,
    ppf=lambda q: -jnp.log1p(-q),
)
