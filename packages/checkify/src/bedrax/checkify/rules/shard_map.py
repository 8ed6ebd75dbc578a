"""Checks of programs that every device of a mesh runs on its blocks: the error is that of the first failing device."""

from bedrax import lax
from bedrax.checkify.assertions import of_first_lane
from bedrax.checkify.errors import Error
from bedrax.checkify.trace import check_rules, checked
from bedrax.core.avals import aval_of
from bedrax.core.facts import fact
from bedrax.core.ir import run
from bedrax.core.staging import close_over, program_of
from bedrax.core.tracing import varying_axes
from bedrax.parallel.primitives import inside, manual_sizes, shard_map_p
from bedrax.parallel.specs import PartitionSpec


@check_rules.rule(shard_map_p, kind="program")
def _shard_map(trace, *args, jaxpr, in_specs, out_specs, **params):
    manual = params["manual"]
    with inside({**params}):
        program, spec = checked(jaxpr, trace.kinds)
        count = len(spec.types())

        def apart(x):
            """A leaf of the error, with a new axis along which the leaves of all devices are concatenated."""
            missing = tuple(n for n in manual if n not in varying_axes(aval_of(x))) if params["check_vma"] else ()
            x = lax.pcast(x, missing, to="varying") if missing else x
            return lax.reshape(x, (1, *aval_of(x).shape))

        def on_blocks(*blocks):
            out = run(program, *blocks)
            return [*map(apart, out[:count]), *out[count:]]

        if count:
            key = (_shard_map, manual, params["check_vma"])
            program = fact(program, key, lambda: program_of(on_blocks, jaxpr.in_avals, jaxpr.debug_info))
    program, consts = close_over(program, every=False)
    out = shard_map_p.bind(
        *consts,
        *args,
        jaxpr=program,
        in_specs=(PartitionSpec(),) * len(consts) + tuple(in_specs),
        out_specs=(PartitionSpec(tuple(manual)),) * count + tuple(out_specs),
        **params,
    )
    if count:
        sizes = tuple(manual_sizes(params["mesh"], manual).values())
        leaves = [lax.reshape(x, (*sizes, *aval_of(x).shape[1:])) for x in out[:count]]
        trace.collector.add(Error(*of_first_lane(spec, leaves, sizes)))
    return out[count:]
