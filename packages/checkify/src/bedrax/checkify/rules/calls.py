"""Checks inside calls: the program of the call is checked."""

from __future__ import annotations

from typing import Any

from bedrax.checkify.errors import Error, Spec
from bedrax.checkify.holders import checks_programs, programs_rule
from bedrax.checkify.trace import check_rules, checked
from bedrax.core.array import Array
from bedrax.core.composites import composite_of
from bedrax.core.jitting import jit_p
from bedrax.core.tracing import Trace, set_trace
from bedrax.lax.primitives.calls import composite_p, plain_calls, remat_p


def report(trace: Trace, spec: Spec, results: list[Array]) -> list[Any]:
    """Record the error, which precedes the results of a checked program. Returns the results."""
    count = len(spec.types())
    trace.collector.add(Error(spec, results[:count]))
    return results[count:]


checks_programs(remat_p, *plain_calls)
_check_call = programs_rule(jit_p)


@check_rules.rule(jit_p, kind="program")
def _jit(trace, *args, jaxpr, **params):
    if composite_of(jaxpr) is None:
        return _check_call(trace, *args, jaxpr=jaxpr, **params)
    with set_trace(trace):  # calls in many lines share the program; the error has the line of this one
        return trace.run(jaxpr, *args)


@check_rules.rule(composite_p, kind="program")
def _composite(trace, *args, jaxpr, **params):
    program, spec = checked(jaxpr, trace.kinds)
    if not spec.failures:
        return composite_p.bind(*args, jaxpr=program, **params)
    with set_trace(trace):  # the error no longer belongs to the named operation
        return trace.run(jaxpr, *args)
