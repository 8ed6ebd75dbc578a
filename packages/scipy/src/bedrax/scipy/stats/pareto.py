"""Pareto's distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the Pareto distribution",
    "logpdf pdf cdf logcdf sf logsf ppf",
    parameters="b",
    support=lambda b: (1, math.inf, 2),
    logpdf=lambda z, b: jnp.log(b) - (b + 1) * jnp.log(z),
    cdf=lambda z, b: -jnp.expm1(-b * jnp.log(z)),
    logsf=lambda z, b: -b * jnp.log(z),
    ppf=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)
