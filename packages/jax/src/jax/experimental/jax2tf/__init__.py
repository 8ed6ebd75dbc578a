"""`jax.experimental.jax2tf`: the public names, from the layers that own them.

Written by hand: `call_tf` is a module and a function here. The module is imported first, so that a later import of
it does not hide the function.
"""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

try:
    from jax.experimental.jax2tf.call_tf import call_tf as call_tf
except ModuleNotFoundError as error:
    if not str(error.name).startswith("bedrax."):
        raise
    raise ModuleNotFoundError(
        f"jax.experimental.jax2tf is in the extra `tf`: install jax[tf] ({error})", name=error.name
    ) from None

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
        PolyShape as PolyShape, convert as convert,
    )  # fmt: skip
    from jax.experimental.jax2tf import jax2tf as jax2tf
