"""Checks inside calls: the program they hold is checked."""

from __future__ import annotations

from typing import Any

from bedrax.checkify.errors import Error, Spec
from bedrax.checkify.trace import check_rules, checked
from bedrax.core.array import Array
from bedrax.core.jitting import jit_p, jit_params
from bedrax.core.tracing import Trace, set_trace
from bedrax.lax.primitives.calls import composite_p, plain_calls, remat_p


def report(trace: Trace, spec: Spec, results: list[Array]) -> list[Any]:
    """Note the error before the results of a checked program; the results."""
    count = len(spec.types())
    trace.collector.add(Error(spec, results[:count]))
    return results[count:]


@check_rules.rule(jit_p, kind="program")
def _jit(trace, *args, jaxpr, name, **params):
    program, spec = checked(jaxpr, trace.kinds)
    if not spec.failures:
        return jit_p.bind(*args, jaxpr=program, name=name, **params)
    params = jit_params(program, name, params, donated_invars=params["donated_invars"])
    return report(trace, spec, jit_p.bind(*args, **params))


def _call(prim):
    @check_rules.rule(prim, kind="program")
    def rule(trace, *args, jaxpr, **params):
        program, spec = checked(jaxpr, trace.kinds)
        return report(trace, spec, prim.bind(*args, jaxpr=program, **params))


for _prim in (remat_p, *plain_calls):
    _call(_prim)


@check_rules.rule(composite_p, kind="program")
def _composite(trace, *args, jaxpr, **params):
    program, spec = checked(jaxpr, trace.kinds)
    if not spec.failures:
        return composite_p.bind(*args, jaxpr=program, **params)
    with set_trace(trace):  # what reports is no longer the named operation
        return trace.run(jaxpr, *args)
