"""`jax.scipy.stats.multivariate_normal`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.multivariate_normal": (
        "logpdf", "pdf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.multivariate_normal import (
        logpdf as logpdf, pdf as pdf,
    )  # fmt: skip
