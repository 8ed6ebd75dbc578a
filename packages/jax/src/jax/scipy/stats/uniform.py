"""`jax.scipy.stats.uniform`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.uniform": (
        "cdf", "logpdf", "pdf", "ppf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.uniform import (
        cdf as cdf, logpdf as logpdf, pdf as pdf, ppf as ppf,
    )  # fmt: skip
