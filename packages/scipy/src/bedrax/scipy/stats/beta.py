"""The beta distribution."""

from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf = location_scale(
    __name__,
    "the beta distribution",
    "logpdf pdf cdf logcdf sf logsf",
    parameters="a b",
    support=lambda a, b: (0, 1, 0.5),
    logpdf=lambda z, a, b: special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b),
    cdf=lambda z, a, b: special.betainc(a, b, z),
    sf=lambda z, a, b: special.betainc(b, a, 1 - z),
)
