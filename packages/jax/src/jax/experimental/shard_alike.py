"""`jax.experimental.shard_alike`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.lax.primitives.placement": ("shard_alike",)})
