"""The gamma distribution."""

import math

from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf = location_scale(
    __name__,
    "the gamma distribution",
    "logpdf pdf cdf logcdf sf logsf",
    parameters="a",
    support=lambda a: (0, math.inf, 1),
    logpdf=lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
    cdf=lambda z, a: special.gammainc(a, z),
    sf=lambda z, a: special.gammaincc(a, z),
)
