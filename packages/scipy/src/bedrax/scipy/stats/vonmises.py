"""The von Mises distribution of angles."""

import math

import bedrax.numpy as jnp
from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["logpdf", "pdf"]

logpdf, pdf = location_scale(
    __name__,
    "the von Mises distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.vonmises.logpdf(jnp.array([0., 1.]), 2.).round(3)
        Array([-0.66200006, -1.5810001 ], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.vonmises.pdf(jnp.array([0., 1.]), 2.).round(3)
        Array([0.51600003, 0.20600002], dtype=float32)
        """,
    },
    parameters={"kappa": "the concentration"},
    scaled=False,
    # cos(x) - 1, and the scaled Bessel function: neither exponential overflows
    logpdf=lambda x, kappa: -2 * kappa * jnp.sin(x / 2) ** 2 - jnp.log(special.i0e(kappa)) - math.log(2 * math.pi),
)
