"""Maps over the blocks of references: each device writes to its block."""

from bedrax.parallel.primitives import inside, shard_map_p
from bedrax.parallel.specs import PartitionSpec
from bedrax.state.discharge import discharged
from bedrax.state.rules.calls import values_of, write_back
from bedrax.state.tables import discharge_rules


@discharge_rules.rule(shard_map_p)
def _shard_map(*args, jaxpr, in_specs, out_specs, **params):
    with inside(params):
        program, written = discharged(jaxpr)
    for i in written:
        if in_specs[i] == PartitionSpec() and params["mesh"].size > 1:
            raise ValueError(
                f"shard_map: every device writes to a reference of type {args[i].aval.short()} that is not cut into blocks (the"
                " function closes over it, or its spec in in_specs does not split it): which value it holds then is not defined. Pass it as an"
                " argument, with a spec that cuts it."
            )
    out = shard_map_p.bind(
        *values_of(args),
        jaxpr=program,
        in_specs=in_specs,
        out_specs=(*out_specs, *(in_specs[i] for i in written)),
        **params,
    )
    count = len(jaxpr.outvars)
    write_back(args, written, out[count:])
    return out[:count]
