"""Laplace's distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logpdf", "pdf"]


def _cdf(z):
    tail = 0.5 * jnp.exp(-abs(z))
    return jnp.where(z <= 0, tail, 1 - tail)


logpdf, pdf, cdf = location_scale(
    __name__, "the Laplace distribution", "logpdf pdf cdf", logpdf=lambda z: -abs(z) - math.log(2), cdf=_cdf
)
