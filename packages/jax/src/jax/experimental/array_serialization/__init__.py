"""`jax.experimental.array_serialization`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {".": ("pytree_serialization", "pytree_serialization_utils", "serialization", "tensorstore_impl")}
)
