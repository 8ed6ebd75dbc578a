"""NumPy evaluation of calls: run the program that the call holds."""

import numpy as np

from bedrax.core.jitting import jit_p
from bedrax.lax.primitives import calls as p
from bedrax.numpy_backend.program_source import evaluate
from bedrax.numpy_backend.tables import numpy_rules


@numpy_rules.rule(jit_p, p.remat_p, *p.plain_calls, p.composite_p, p.custom_partitioning_p, kind="program")
def _program(*args, jaxpr, **_):
    return evaluate(jaxpr, *args)


numpy_rules.add(p.optimization_barrier_p, lambda *args: [np.asarray(x) for x in args])
numpy_rules.add(p.name_p, lambda x, name: x)
