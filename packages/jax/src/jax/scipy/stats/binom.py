"""`jax.scipy.stats.binom`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.binom": (
        "logpmf", "pmf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.binom import (
        logpmf as logpmf, pmf as pmf,
    )  # fmt: skip
