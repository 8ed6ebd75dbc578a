"""Cauchy's distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

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
    "logpdf pdf cdf logcdf sf logsf ppf isf",
    logpdf=lambda z: -math.log(math.pi) - jnp.log1p(z * z),
    cdf=lambda z: _tail(-z),
    sf=_tail,
    logcdf=lambda z: jnp.where(z > 0, jnp.log1p(-_tail(z)), jnp.log(_tail(-z))),
    logsf=lambda z: jnp.where(z < 0, jnp.log1p(-_tail(-z)), jnp.log(_tail(z))),
    ppf=lambda q: jnp.where(q > 0.5, -_quantile(1 - q), _quantile(q)),
    isf=lambda q: jnp.where(q > 0.5, _quantile(1 - q), -_quantile(q)),
)
