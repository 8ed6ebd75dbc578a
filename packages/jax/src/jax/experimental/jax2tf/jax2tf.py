"""`jax.experimental.jax2tf.jax2tf`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.jax2tf": (
        "PolyShape", "convert",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.jax2tf import (
        PolyShape as PolyShape, convert as convert,
    )  # fmt: skip
