"""The von Mises distribution of angles."""

import math

import bedrax.numpy as jnp
from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["logpdf", "pdf"]

logpdf, pdf = location_scale(
    __name__,
    "the von Mises distribution",
    "logpdf pdf",
    parameters="kappa",
    scaled=False,
    # cos(x) - 1, and the scaled Bessel function: neither exponential overflows
    logpdf=lambda x, kappa: -2 * kappa * jnp.sin(x / 2) ** 2 - jnp.log(special.i0e(kappa)) - math.log(2 * math.pi),
)
