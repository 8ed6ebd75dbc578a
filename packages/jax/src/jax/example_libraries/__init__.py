"""`jax.example_libraries`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, (
    "optimizers", "stax",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.example_libraries import optimizers as optimizers
    from jax.example_libraries import stax as stax
