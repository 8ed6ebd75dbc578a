from bedrax.parallel.mapping import shard_map_with_check_rep as _shard_map

shard_map = _shard_map
