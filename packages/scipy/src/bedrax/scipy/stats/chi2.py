"""The chi-squared distribution."""

import math

from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale
from bedrax.scipy.stats.gamma import log_gammaincc

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _logpdf(z, df):
    half = df / 2
    return special.xlogy(half - 1, z / 2) - z / 2 - special.gammaln(half) - math.log(2)


logpdf, pdf, cdf, logcdf, sf, logsf = location_scale(
    __name__,
    "the chi-squared distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.chi2.logpdf(jnp.array([1., 3.]), 3.).round(3)
        Array([-1.419    , -1.8700001], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.chi2.pdf(jnp.array([1., 3.]), 3.).round(3)
        Array([0.24200001, 0.15400001], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.chi2.cdf(jnp.array([1., 3.]), 3.).round(3)
        Array([0.19900002, 0.60800004], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.chi2.logcdf(jnp.array([1., 3.]), 3.).round(3)
        Array([-1.616, -0.497], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.chi2.sf(jnp.array([1., 3.]), 3.).round(3)
        Array([0.80100006, 0.39200002], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.chi2.logsf(jnp.array([1., 3.]), 3.).round(3)
        Array([-0.22200002, -0.93700004], dtype=float32)
        """,
    },
    parameters={"df": "the degrees of freedom"},
    support=lambda df: (0, math.inf, 1),
    logpdf=_logpdf,
    cdf=lambda z, df: special.gammainc(df / 2, z / 2),
    sf=lambda z, df: special.gammaincc(df / 2, z / 2),
    logsf=lambda z, df: log_gammaincc(df / 2, z / 2),
)
