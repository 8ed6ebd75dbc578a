"""StableHLO of collectives over devices: none yet. Those over an axis of `vmap` are ordinary operations by now."""

from bedrax.lax.primitives import collectives as p
from bedrax.xla_backend.tables import lowering_rules

lowering_rules.absent(
    p.psum_p, p.pmax_p, p.pmin_p, p.ppermute_p, p.all_gather_p, p.reduce_scatter_p, p.all_to_all_p, p.axis_index_p,
    why="a named axis that no vmap around it maps would have to be one of devices, and programs over those come from "
    "shard_map, which gives these primitives their rules",
)  # fmt: skip
