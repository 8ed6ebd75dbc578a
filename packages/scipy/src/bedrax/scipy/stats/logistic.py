"""The logistic distribution."""

import bedrax.numpy as jnp
from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


def _logpdf(z):
    return -abs(z) - 2 * jnp.log1p(jnp.exp(-abs(z)))


# SciPy's `ppf` and `isf` have the argument q; here it is x, as in the public signature.
logpdf, pdf, cdf, sf, ppf, isf = location_scale(
    __name__,
    "the logistic distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.logistic.logpdf(jnp.array([0., 2.])).round(3)
        Array([-1.386    , -2.2540002], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.logistic.pdf(jnp.array([0., 2.])).round(3)
        Array([0.25 , 0.105], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.logistic.cdf(jnp.array([0., 2.])).round(3)
        Array([0.5       , 0.88100004], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.logistic.sf(jnp.array([0., 2.])).round(3)
        Array([0.5  , 0.119], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.logistic.ppf(jnp.array([0.25, 0.5])).round(3)
        Array([-1.0990001,  0.       ], dtype=float32)
        >>> jax.scipy.stats.logistic.cdf(jax.scipy.stats.logistic.ppf(jnp.array([0.25, 0.5]))).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
        "isf": """
        >>> jax.scipy.stats.logistic.isf(jnp.array([0.25, 0.5])).round(3)
        Array([1.0990001, 0.       ], dtype=float32)
        """,
    },
    first="x",
    logpdf=_logpdf,
    cdf=special.expit,
    sf=lambda z: special.expit(-z),
    ppf=special.logit,
    isf=lambda q: -special.logit(q),
)
