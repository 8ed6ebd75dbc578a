from bedrax.lax.primitives.placement import shard_alike as shard_alike
