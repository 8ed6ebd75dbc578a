"""NumPy evaluation of functions with custom derivative or batching rules: it ignores the rules."""

from bedrax.lax.primitives import custom_rules as p
from bedrax.numpy_backend.program_source import evaluate
from bedrax.numpy_backend.tables import numpy_rules


@numpy_rules.rule(p.custom_jvp_call_p, p.custom_vjp_call_p, p.linear_call_p, kind="program")
def _call(*args, call_jaxpr, **_):
    return evaluate(call_jaxpr, *args)


numpy_rules.add(p.remat_opt_p, lambda *args, jaxpr, **_: evaluate(jaxpr, *args), "program")
numpy_rules.add(p.custom_lin_p, p.custom_lin_p.impl, "error")
