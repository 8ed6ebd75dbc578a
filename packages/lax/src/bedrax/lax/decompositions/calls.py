"""Calls in terms of others: an order of operations by barriers."""

from __future__ import annotations

from typing import Any

from bedrax.core.ir import Literal, run
from bedrax.lax.primitives import calls as p
from bedrax.lax.tables import decompositions


@decompositions.rule(p.program_order_p)
def _program_order(*operands, jaxpr, enforce, strict_in, strict_out):
    """Put a barrier between two operations, with the results of one and the operands of the next."""
    if not enforce:
        return run(jaxpr, *operands)
    env = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*jaxpr.consts, *operands), strict=True))
    read = lambda v: v.val if type(v) is Literal else env[v]

    def together(variables):
        wanted = [v for v in dict.fromkeys(v for v in variables if type(v) is not Literal) if v.aval.is_array]
        if wanted:
            env.update(zip(wanted, p.optimization_barrier_p.bind(*map(read, wanted)), strict=True))

    if strict_in:
        together(jaxpr.invars)
    before: list[Any] = []
    for eqn in jaxpr.eqns:
        if before:
            together([*before, *eqn.invars])
        out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
        before = [v for v in eqn.outvars if v.aval.is_array] or before
    if strict_out:
        together(jaxpr.outvars)
    return list(map(read, jaxpr.outvars))
