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
    "logpdf pdf cdf sf ppf isf",
    first="x",
    logpdf=_logpdf,
    cdf=special.expit,
    sf=lambda z: special.expit(-z),
    ppf=special.logit,
    isf=lambda q: -special.logit(q),
)
