"""`jax.scipy.spatial`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, (
    "transform",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.scipy.spatial import transform as transform
