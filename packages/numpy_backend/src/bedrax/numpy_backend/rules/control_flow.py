"""NumPy evaluation of control flow: Python's own."""

import numpy as np

from bedrax.lax.element_types import base_aval
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.numpy_backend.program_source import compiled
from bedrax.numpy_backend.tables import numpy_rules


@numpy_rules.rule(scan_p)
def _scan(*args, jaxpr, num_consts, num_carry, length, reverse, **_):
    consts, carry, xs = (
        args[:num_consts],
        list(args[num_consts : num_consts + num_carry]),
        args[num_consts + num_carry :],
    )
    stacked = [np.empty((length, *a.shape), a.dtype) for a in map(base_aval, jaxpr.out_avals[num_carry:])]
    body = compiled(jaxpr).function
    for i in range(length - 1, -1, -1) if reverse else range(length):
        out = body(*consts, *carry, *(np.asarray(x[i]) for x in xs))
        carry = out[:num_carry]
        for ys, y in zip(stacked, out[num_carry:], strict=True):
            ys[i] = y
    return [*carry, *stacked]


@numpy_rules.rule(while_p)
def _while(*args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    cond_consts, body_consts = args[:cond_nconsts], args[cond_nconsts : cond_nconsts + body_nconsts]
    carry = list(args[cond_nconsts + body_nconsts :])
    condition, body = compiled(cond_jaxpr).function, compiled(body_jaxpr).function
    while condition(*cond_consts, *carry)[0]:
        carry = body(*body_consts, *carry)
    return carry


@numpy_rules.rule(cond_p)
def _cond(index, *args, branches, **_):
    return compiled(branches[min(max(int(index), 0), len(branches) - 1)]).function(*args)
