"""`jax.experimental.array_serialization`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {}
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "pytree_serialization", "pytree_serialization_utils", "serialization", "tensorstore_impl",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.experimental.array_serialization import pytree_serialization as pytree_serialization
    from jax.experimental.array_serialization import pytree_serialization_utils as pytree_serialization_utils
    from jax.experimental.array_serialization import serialization as serialization
    from jax.experimental.array_serialization import tensorstore_impl as tensorstore_impl
