"""Pareto's distribution."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf = location_scale(
    __name__,
    "the Pareto distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.pareto.logpdf(jnp.array([1., 2.]), 3.).round(3)
        Array([ 1.0990001, -1.674    ], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.pareto.pdf(jnp.array([1., 2.]), 3.).round(3)
        Array([3.0000002 , 0.18800001], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.pareto.cdf(jnp.array([1., 2.]), 3.).round(3)
        Array([0.        , 0.87500006], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.pareto.logcdf(jnp.array([1., 2.]), 3.).round(3)
        Array([  -inf, -0.134], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.pareto.sf(jnp.array([1., 2.]), 3.).round(3)
        Array([1.   , 0.125], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.pareto.logsf(jnp.array([1., 2.]), 3.).round(3)
        Array([-0.   , -2.079], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.pareto.ppf(jnp.array([0.25, 0.5]), 3.).round(3)
        Array([1.1010001, 1.2600001], dtype=float32)
        >>> jax.scipy.stats.pareto.cdf(jax.scipy.stats.pareto.ppf(jnp.array([0.25, 0.5]), 3.), 3.).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
    },
    parameters={"b": "the exponent, positive"},
    support=lambda b: (1, math.inf, 2),
    logpdf=lambda z, b: jnp.log(b) - (b + 1) * jnp.log(z),
    cdf=lambda z, b: -jnp.expm1(-b * jnp.log(z)),
    logsf=lambda z, b: -b * jnp.log(z),
    ppf=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)
