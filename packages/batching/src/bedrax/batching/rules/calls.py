"""Batching of calls: the program they hold is batched."""

from bedrax.batching.tables import batch_rules, elementwise
from bedrax.batching.trace import batch_flat, batch_jaxpr
from bedrax.core.ir import run
from bedrax.core.jitting import jit_p, jit_params
from bedrax.lax.primitives import calls as p


@batch_rules.rule(jit_p, kind="program")
def _jit(axis, args, dims, *, jaxpr, name, **params):
    batched, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    params = jit_params(batched, name, params, donated_invars=params["donated_invars"])
    return jit_p.bind(*args, **params), out_dims


def _program_rule(prim):
    def rule(axis, args, dims, *, jaxpr, **params):
        batched, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
        return prim.bind(*args, jaxpr=batched, **params), out_dims

    batch_rules.add(prim, rule, "program")


for _prim in (p.remat_p, *p.plain_calls):
    _program_rule(_prim)


@batch_rules.rule(p.composite_p, kind="program")
def _composite(axis, args, dims, *, jaxpr, name, version, attributes):
    # The batched program is no longer the named operation: it is what the name means, batched.
    return batch_flat(lambda *xs: run(jaxpr, *xs), axis, args, dims)


batch_rules.add(p.optimization_barrier_p, lambda axis, args, dims: (p.optimization_barrier_p.bind(*args), dims))
batch_rules.absent(
    p.custom_partitioning_p,
    why="its devices' programs know no mapped axis; jax.custom_batching.custom_vmap says what to do",
)
elementwise(p.name_p)
