"""`jax.experimental.shard_map`: the older name of `jax.shard_map`."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {}, renamed={"bedrax.parallel.mapping": {"shard_map": "shard_map_with_check_rep"}}
)
