"""Placement for backends with one place: values stay as they are."""

from bedrax.lax.primitives.placement import inspect_sharding_p, reshard_p, shard_alike_p
from bedrax.lax.tables import decompositions


@decompositions.rule(reshard_p, kind="identity")
def _reshard(x, *, to, src):
    return x


@decompositions.rule(shard_alike_p, kind="identity")
def _shard_alike(x, y):
    return [x, y]


@decompositions.rule(inspect_sharding_p, kind="nothing")
def _inspect(x, *, callback):
    return []
