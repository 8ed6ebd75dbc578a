"""`jax.flatten_util`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.numpy.flatten_util": (
        "ravel_pytree",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.numpy.flatten_util import (
        ravel_pytree as ravel_pytree,
    )  # fmt: skip
