"""`jax.scipy.cluster`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {}
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "vq",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.scipy.cluster import vq as vq
