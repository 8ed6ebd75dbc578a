"""`jax.scipy.stats.logistic`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.logistic": (
        "cdf", "isf", "logpdf", "pdf", "ppf", "sf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.logistic import (
        cdf as cdf, isf as isf, logpdf as logpdf, pdf as pdf, ppf as ppf, sf as sf,
    )  # fmt: skip
