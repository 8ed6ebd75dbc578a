"""StableHLO of calls: nested programs and barriers."""

from bedrax.core.jitting import Inline, jit_p
from bedrax.lax.primitives import calls as p
from bedrax.xla_backend.lowering import partitioned_calls  # noqa: F401  # the rule of custom_partitioning
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(jit_p)
def _jit(ctx, *operands, jaxpr, name, inline, **_):
    if inline in (Inline.JAX_EARLY, Inline.JAX_LATE):
        return ctx.inline_jaxpr(jaxpr, *operands, part=f"jit({name})", called=True)
    pairs = () if inline is Inline.AUTO else (("inlineable", inline.value),)
    return ctx.call_jaxpr(name, jaxpr, *operands, pairs=pairs)


@lowering_rules.rule(p.closed_call_p, p.core_call_p)
def _call(ctx, *operands, jaxpr, **_):
    return ctx.inline_jaxpr(jaxpr, *operands, part=ctx.prim.name)


@lowering_rules.rule(p.xla_metadata_call_p)
def _marked_call(ctx, *operands, jaxpr, xla_metadata, **_):
    return ctx.call_jaxpr("xla_metadata_call", jaxpr, *operands, pairs=xla_metadata)


@lowering_rules.rule(p.remat_p)
def _checkpoint(ctx, *operands, jaxpr, prevent_cse=True, differentiated=False, **_):
    # A recomputation must not be merged with the computation that it repeats. The barrier hides that they are equal.
    prevent = any(prevent_cse) if isinstance(prevent_cse, tuple) else prevent_cse
    if differentiated and prevent and operands:
        operands = ctx.emit("stablehlo.optimization_barrier", operands, [v.type for v in operands])
    return ctx.inline_jaxpr(jaxpr, *operands, part="checkpoint")


@lowering_rules.rule(p.optimization_barrier_p)
def _barrier(ctx, *operands):
    return ctx.emit("stablehlo.optimization_barrier", operands)


lowering_rules.add(p.name_p, lambda ctx, x, *, name: x)


@lowering_rules.rule(p.composite_p)
def _composite(ctx, *operands, jaxpr, name, version, attributes):
    program = ctx.program
    symbol = program.unique_symbol(name)
    types = [ctx.type_of(v.aval) for v in jaxpr.invars]
    results = [ctx.type_of(v.aval) for v in jaxpr.outvars]
    program.function(symbol, types, results, lambda block, arguments: ctx.inline_in(block, jaxpr, arguments))
    return ctx.emit(
        "stablehlo.composite",
        operands,
        name=name,
        decomposition=ctx.symbol(symbol),
        version=ctx.i32(version),
        composite_attributes=dict(attributes),
    )
