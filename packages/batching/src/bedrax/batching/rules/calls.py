"""Batching of calls: the program they hold is batched."""

from bedrax.batching.holders import batches_programs
from bedrax.batching.tables import batch_rules, elementwise
from bedrax.batching.trace import batch_flat
from bedrax.core.ir import run
from bedrax.core.jitting import jit_p
from bedrax.lax.primitives import calls as p

batches_programs(jit_p, p.remat_p, *p.plain_calls)


@batch_rules.rule(p.composite_p, kind="program")
def _composite(axis, args, dims, *, jaxpr, name, version, attributes):
    # The batched program is no longer the named operation: it is the batched program of that operation.
    return batch_flat(lambda *xs: run(jaxpr, *xs), axis, args, dims)


batch_rules.add(p.optimization_barrier_p, lambda axis, args, dims: (p.optimization_barrier_p.bind(*args), dims))
batch_rules.absent(
    p.custom_partitioning_p,
    why="its programs for the devices have no mapped axis; define a batching rule with jax.custom_batching.custom_vmap",
)
elementwise(p.name_p)
