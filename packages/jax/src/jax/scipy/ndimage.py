"""`jax.scipy.ndimage`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.ndimage": (
        "map_coordinates",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.ndimage import (
        map_coordinates as map_coordinates,
    )  # fmt: skip
