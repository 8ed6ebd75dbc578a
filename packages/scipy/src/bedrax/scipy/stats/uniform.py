"""The uniform distribution between `loc` and ``loc + scale``."""

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

logpdf, pdf, cdf, ppf = location_scale(
    __name__,
    "the uniform distribution",
    "logpdf pdf cdf ppf",
    support=lambda: (0, 1, 0.5),
    logpdf=jnp.zeros_like,
    cdf=lambda z: z,
    ppf=lambda q: q,
)
