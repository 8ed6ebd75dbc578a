"""`jax.scipy.spatial.transform`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.spatial.transform": (
        "Rotation", "Slerp",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.spatial.transform import (
        Rotation as Rotation, Slerp as Slerp,
    )  # fmt: skip
