"""Batching of placement: the mapped axis is split as `spmd_axis_name` says, else as the partitioner likes."""

from bedrax.batching.tables import batch_rules
from bedrax.lax.primitives.placement import reshard_p


@batch_rules.rule(reshard_p)
def _reshard(axis, args, dims, *, to, src):
    (x,), (d,) = args, dims
    to, src = (None if place is None else place.with_dimension(d, axis.spmd_name) for place in (to, src))
    return reshard_p.bind(x, to=to, src=src), d
