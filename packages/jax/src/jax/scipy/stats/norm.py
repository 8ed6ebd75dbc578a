"""`jax.scipy.stats.norm`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.norm": (
        "cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.norm import (
        cdf as cdf, isf as isf, logcdf as logcdf, logpdf as logpdf, logsf as logsf, pdf as pdf, ppf as ppf,
        sf as sf,
    )  # fmt: skip
