"""The gamma distribution."""

import math

import bedrax.numpy as jnp
from bedrax.core.array import Array
from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def log_gammaincc(a: Array, x: Array) -> Array:
    """``log(gammaincc(a, x))``, also where `gammaincc` underflows.

    There it is a continued fraction: https://dlmf.nist.gov/8.9 (8.9.2).
    """
    upper = special.gammaincc(a, x)
    far = (upper < math.sqrt(jnp.finfo(x.dtype).tiny)) & (x > a)
    x_far = jnp.where(far, x, 2 * a + 100)  # the fraction has no pole above a
    fraction = x_far - a + 2 * _TERMS + 1
    for n in range(_TERMS, 0, -1):
        fraction = x_far - a + (2 * n - 1) - n * (n - a) / fraction
    log_far = special.xlogy(a, x_far) - x_far - special.gammaln(a) - jnp.log(fraction)
    return jnp.where(far, log_far, jnp.log(jnp.where(far, 1, upper)))


_TERMS = 24  # of the continued fraction: as many as float64 needs where the function is far below 1

logpdf, pdf, cdf, logcdf, sf, logsf = location_scale(
    __name__,
    "the gamma distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.gamma.logpdf(jnp.array([1., 2.]), 3.).round(3)
        Array([-1.6930001, -1.307    ], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.gamma.pdf(jnp.array([1., 2.]), 3.).round(3)
        Array([0.18400002, 0.27100003], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.gamma.cdf(jnp.array([1., 2.]), 3.).round(3)
        Array([0.08000001, 0.323     ], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.gamma.logcdf(jnp.array([1., 2.]), 3.).round(3)
        Array([-2.522    , -1.1290001], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.gamma.sf(jnp.array([1., 2.]), 3.).round(3)
        Array([0.92      , 0.67700005], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.gamma.logsf(jnp.array([1., 2.]), 3.).round(3)
        Array([-0.08400001, -0.39100003], dtype=float32)
        """,
    },
    parameters={"a": "the shape, positive"},
    support=lambda a: (0, math.inf, 1),
    logpdf=lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
    cdf=lambda z, a: special.gammainc(a, z),
    sf=lambda z, a: special.gammaincc(a, z),
    logsf=lambda z, a: log_gammaincc(a, z),
)
