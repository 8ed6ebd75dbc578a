"""`jax.experimental.jax2tf`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.jax2tf": (
        "PolyShape", "convert",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, ("call_tf", "jax2tf",))

if TYPE_CHECKING:
    from bedrax.jax2tf import (
        PolyShape as PolyShape, convert as convert,
    )  # fmt: skip
    from jax.experimental.jax2tf import call_tf as call_tf
    from jax.experimental.jax2tf import jax2tf as jax2tf
