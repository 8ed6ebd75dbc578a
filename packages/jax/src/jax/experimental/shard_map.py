"""`jax.experimental.shard_map`: the older name of `jax.shard_map`."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
