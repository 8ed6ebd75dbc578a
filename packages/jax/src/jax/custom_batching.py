"""`jax.custom_batching`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.batching": (
        "custom_vmap", "sequential_vmap",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.batching import (
        custom_vmap as custom_vmap, sequential_vmap as sequential_vmap,
    )  # fmt: skip
