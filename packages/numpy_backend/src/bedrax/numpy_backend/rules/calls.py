"""NumPy evaluation of calls: run what they hold."""

import numpy as np

from bedrax.core.jitting import jit_p
from bedrax.lax.primitives.calls import (
    closed_call_p,
    composite_p,
    core_call_p,
    custom_jvp_call_p,
    custom_lin_p,
    custom_vjp_call_p,
    linear_call_p,
    name_p,
    optimization_barrier_p,
    remat_opt_p,
    remat_p,
)
from bedrax.numpy_backend.executor import evaluate
from bedrax.numpy_backend.tables import numpy_rules


@numpy_rules.rule(jit_p, remat_p, closed_call_p, core_call_p, composite_p, remat_opt_p, kind="program")
def _program(*args, jaxpr, **_):
    return evaluate(jaxpr, *args)


@numpy_rules.rule(custom_jvp_call_p, custom_vjp_call_p, linear_call_p, kind="program")
def _custom(*args, call_jaxpr, **_):
    return evaluate(call_jaxpr, *args)


numpy_rules.add(custom_lin_p, custom_lin_p.impl)
numpy_rules.add(optimization_barrier_p, lambda *args: [np.asarray(x) for x in args])
numpy_rules.add(name_p, lambda x, name: x)
