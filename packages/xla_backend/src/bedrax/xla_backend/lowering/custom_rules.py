"""StableHLO of functions with custom derivative rules: the function without its rules."""

from bedrax.lax.primitives import custom_rules as p
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(p.custom_jvp_call_p, p.custom_vjp_call_p, p.linear_call_p)
def _call(ctx, *operands, call_jaxpr, **_):
    return ctx.inline_jaxpr(call_jaxpr, *operands)


lowering_rules.add(p.remat_opt_p, lambda ctx, *operands, jaxpr, **_: ctx.inline_jaxpr(jaxpr, *operands))
lowering_rules.add(p.custom_lin_p, p.refuse_forward_mode, "error")
