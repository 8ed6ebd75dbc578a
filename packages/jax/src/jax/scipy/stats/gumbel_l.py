"""`jax.scipy.stats.gumbel_l`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.gumbel_l": (
        "cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.gumbel_l import (
        cdf as cdf, logcdf as logcdf, logpdf as logpdf, logsf as logsf, pdf as pdf, ppf as ppf, sf as sf,
    )  # fmt: skip
