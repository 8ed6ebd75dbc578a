"""`jax.scipy.stats.bernoulli`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.bernoulli": (
        "cdf", "logpmf", "pmf", "ppf",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.stats.bernoulli import (
        cdf as cdf, logpmf as logpmf, pmf as pmf, ppf as ppf,
    )  # fmt: skip
