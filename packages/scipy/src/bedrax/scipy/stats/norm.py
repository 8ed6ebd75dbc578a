"""The normal distribution."""

import math

from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf, ppf, isf = location_scale(
    __name__,
    "the normal distribution",
    "logpdf pdf cdf logcdf sf logsf ppf isf",
    logpdf=lambda z: -0.5 * (z * z + math.log(2 * math.pi)),
    cdf=special.ndtr,
    logcdf=special.log_ndtr,
    sf=lambda z: special.ndtr(-z),
    logsf=lambda z: special.log_ndtr(-z),
    ppf=special.ndtri,
    isf=lambda q: -special.ndtri(q),
)
