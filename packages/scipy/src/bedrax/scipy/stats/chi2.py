"""The chi-squared distribution."""

import math

from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _logpdf(z, df):
    half = df / 2
    return special.xlogy(half - 1, z / 2) - z / 2 - special.gammaln(half) - math.log(2)


logpdf, pdf, cdf, logcdf, sf, logsf = location_scale(
    __name__,
    "the chi-squared distribution",
    "logpdf pdf cdf logcdf sf logsf",
    parameters="df",
    support=lambda df: (0, math.inf, 1),
    logpdf=_logpdf,
    cdf=lambda z, df: special.gammainc(df / 2, z / 2),
    sf=lambda z, df: special.gammaincc(df / 2, z / 2),
)
