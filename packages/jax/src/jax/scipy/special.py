"""`jax.scipy.special`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.special": (
        "logsumexp", "ndtr", "ndtri",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.special import (
        logsumexp as logsumexp,
        ndtr as ndtr,
        ndtri as ndtri,
    )
