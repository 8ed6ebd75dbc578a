"""`jax.scipy.stats.wrapcauchy`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.wrapcauchy": (
        "logpdf", "pdf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.wrapcauchy import (
        logpdf as logpdf, pdf as pdf,
    )  # fmt: skip
