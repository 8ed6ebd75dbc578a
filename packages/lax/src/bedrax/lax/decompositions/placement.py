"""Placement for backends with one place: the identity."""

from bedrax.lax.primitives.placement import inspect_sharding_p, reshard_p, shard_alike_p
from bedrax.lax.tables import decompositions

decompositions.add(reshard_p, lambda x, *, to, src: x, kind="identity")
decompositions.add(shard_alike_p, lambda x, y: [x, y], kind="identity")
decompositions.add(inspect_sharding_p, lambda x, *, callback: [], kind="nothing")
