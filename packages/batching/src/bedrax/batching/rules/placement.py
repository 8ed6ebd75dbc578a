"""Batching of placement: the mapped axis is split by `spmd_axis_name`; without it the partitioner chooses."""

from bedrax.batching.tables import all_to_front, batch_rules
from bedrax.lax.primitives.placement import inspect_sharding_p, reshard_p, shard_alike_p


@batch_rules.rule(reshard_p)
def _reshard(axis, args, dims, *, to, src):
    (x,), (d,) = args, dims
    to, src = (None if place is None else place.with_dimension(d, axis.spmd_name) for place in (to, src))
    return reshard_p.bind(x, to=to, src=src), d


@batch_rules.rule(shard_alike_p)
def _alike(axis, args, dims):
    return shard_alike_p.bind(*all_to_front(args, dims, axis.size)), [0, 0]


@batch_rules.rule(inspect_sharding_p)
def _inspect(axis, args, dims, *, callback):
    return inspect_sharding_p.bind(*args, callback=callback), []
