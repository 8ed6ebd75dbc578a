"""Calls of programs with references: the written values are further results."""

from __future__ import annotations

from typing import Any

from bedrax.core.array import Array
from bedrax.core.ir import Literal, run
from bedrax.core.jitting import jit_p
from bedrax.core.tracing import current, eval_trace
from bedrax.lax.primitives.calls import plain_calls, remat_p
from bedrax.state.discharge import discharged
from bedrax.state.holders import discharges_programs, needs_references
from bedrax.state.primitives import read_whole, write_whole
from bedrax.state.tables import discharge_rules
from bedrax.state.types import Cell, Ref


def write_back(
    refs: tuple[Any, ...], written: list[int] | tuple[int, ...], values: list[Array], owned: list[bool] | None = None
) -> None:
    """Write the last values of references, which follow the results of an operation."""
    for n, (i, value) in enumerate(zip(written, values, strict=True)):
        write_whole(refs[i], value, owned is not None and owned[n])


def values_of(args: tuple[Any, ...]) -> list[Any]:
    """Arguments with the values of references."""
    return [read_whole(x) if isinstance(x, Ref) else x for x in args]


discharges_programs(*plain_calls, remat_p)


@discharge_rules.rule(jit_p)
def _jit(*args, jaxpr, donated_invars, **params):
    if needs_references(jaxpr):
        return run(jaxpr, *args)
    program, written = discharged(jaxpr)
    owned = [type(x) is Cell and x._trace is current.trace and x._owned for x in args]
    values = values_of(args)
    donated = list(donated_invars)
    used = {v for e in program.eqns for v in e.invars}
    for i in written:  # the reference holds the only name of the buffer: it is written in place
        if owned[i] and program.invars[i] in used:
            donated[i] = sum(x is values[i] for x in values) == 1
    out = jit_p.bind(*values, jaxpr=program, donated_invars=tuple(donated), **params)
    for x, o in zip(args, owned, strict=True):
        if o:  # a compiled call keeps no operand
            x._owned = True
    count = len(jaxpr.outvars)
    outvars = program.outvars
    fresh = [
        current.trace is eval_trace
        and type(v) is not Literal
        and v not in program.invars
        and v not in program.constvars
        and outvars.count(v) == 1
        for v in outvars[count:]
    ]
    write_back(args, written, out[count:], fresh)
    return out[:count]
