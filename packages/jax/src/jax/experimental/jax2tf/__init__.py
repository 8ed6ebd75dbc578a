"""`jax.experimental.jax2tf`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

# The function; the module of the same name is imported first, so that a later import of it does not hide the function.
from jax.experimental.jax2tf.call_tf import call_tf as call_tf

_HOMES = {
    "bedrax.call_tf": (
        "call_tf",
    ),
    "bedrax.jax2tf": (
        "PolyShape", "convert",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, ("jax2tf",))

if TYPE_CHECKING:
    from bedrax.jax2tf import (
        PolyShape as PolyShape,
        convert as convert,
    )
    from jax.experimental.jax2tf import jax2tf as jax2tf
