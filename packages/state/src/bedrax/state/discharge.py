"""Discharge: programs with references as pure programs, and operations with programs on the values of references."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, run
from bedrax.core.passes import programs_in
from bedrax.core.tables import programs
from bedrax.core.tracing import Primitive, Trace, current
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.lax.primitives.custom_rules import custom_jvp_call_p, custom_lin_p, custom_vjp_call_p
from bedrax.state.primitives import DischargeTrace, NewRef, RefPrimitive, check_alive, read_whole, records, write_whole
from bedrax.state.tables import discharge_rules
from bedrax.state.types import AbstractRef, Cell, Ref, RefTracer
from bedrax.state.viewed_rules import bind_parts, parts_of_call
from bedrax.state.views import TransformedRef

WITH_RULES = (custom_jvp_call_p, custom_vjp_call_p, custom_lin_p)


class Pure(NamedTuple):
    """The pure form of a program with references.

    Attributes:
      program: takes a value for each reference. Its results are those of the program, then the last values of the
        references that were written to.
      written: the positions of these references among the arguments.
    """

    program: Jaxpr
    written: tuple[int, ...]


@cached
def discharged(jaxpr: Jaxpr) -> Pure:
    """The pure form of a program that closes over no reference."""

    def flat(*values):
        trace = current.trace
        args = [
            Cell(a, v, trace, borrowed=True) if a.mutable else v for a, v in zip(jaxpr.in_avals, values, strict=True)
        ]
        outs = run(jaxpr, *args)
        written = [i for i, x in enumerate(args) if type(x) is Cell and x._written]
        return [*outs, *(args[i]._value for i in written)], tuple(written)

    types = [a.inner_aval if a.mutable else a for a in jaxpr.in_avals]
    return Pure(*staging.trace_to_jaxpr(flat, types, jaxpr.debug_info, kind=DischargeTrace))


@cached
def lends(jaxpr: Jaxpr) -> bool:
    """Whether a derivative rule of a function in the program may use a reference that is an argument of the program."""
    return any(
        (e.primitive in WITH_RULES and any(v.aval.mutable for v in e.invars)) or any(map(lends, programs_in(e)))
        for e in jaxpr.eqns
    )


def _base(ref: Ref) -> Ref:
    return _base(ref.ref) if isinstance(ref, TransformedRef) else ref


def identity(ref: Ref) -> Any:
    """The common identity of two names of one reference."""
    ref = _base(ref)
    return ref.variable if type(ref) is RefTracer else ref


def check_distinct(prim: Primitive, refs: Sequence[Ref]) -> None:
    """Raise if an operation gets one reference twice."""
    seen = set()
    for ref in refs:
        if type(ref) is Cell:
            check_alive(ref)
        name = identity(ref)
        if name in seen:
            raise ValueError(
                f"a reference of type {ref.aval.short()} is passed to '{prim}' twice: as two arguments, or as an argument"
                " and by being closed over. Inside, one reference has one name: pass it once, and use that name."
            )
        seen.add(name)


def _operation(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any] | None:
    """Run an operation that holds programs on references. Returns None if it is processed like any other operation."""
    refs = [x for x in args if isinstance(x, Ref)]
    trace = current.trace
    if isinstance(prim, RefPrimitive):
        return None
    if prim is while_p:  # the condition and the body may use the same ones
        edge = params["cond_nconsts"]
        check_distinct(prim, [x for x in args[:edge] if isinstance(x, Ref)])
        check_distinct(prim, [x for x in args[edge:] if isinstance(x, Ref)])
    else:
        check_distinct(prim, refs)
    theirs = all(type(x := _base(r)) is not Cell or x._trace is not trace for r in refs)
    if prim is custom_lin_p and any(isinstance(x, TransformedRef) for x in refs):
        return bind_parts(args, params)
    if prim in WITH_RULES and theirs and not isinstance(trace, DischargeTrace):
        return None  # the user's functions run with the references; a transposition passes them to a backward rule
    rule = discharge_rules.find(prim)
    if rule is None:
        if prim is custom_lin_p:
            raise ValueError(
                f"a forward rule of a custom_vjp function returned a reference of type {refs[0].aval.short()} that was not"
                " an argument: it would be used when the rule has ended. Return its value, ref[...]"
            )
        raise TypeError(
            f"'{prim}' takes no references, got one of type {refs[0].aval.short()}: read it first, ref[...]."
            " References can be passed to jit, scan, while_loop, fori_loop, cond, switch, vmap, jvp, vjp, custom_vjp"
        )
    if records(trace) and not any(isinstance(x, TransformedRef) for x in refs):
        return None
    if prim in (scan_p, cond_p) and theirs and getattr(trace, "splits_loops", False):  # it passes references on
        if any(lends(use.program) for use in programs[prim](params)):
            return None
    return rule(*args, **params)


@contextlib.contextmanager
def _inputs(
    trace: Trace, args: Sequence[Any], chosen: Sequence[bool], take: Callable[..., Any], give: Callable[..., Any]
) -> Iterator[Any]:
    """See `bedrax.core.tracing.inputs_of`. While the function runs, only its arguments may name the references."""
    refs = [x for x in args if isinstance(x, Ref)]
    check_distinct(trace, refs)
    out, cells = [], []
    for i, (x, c) in enumerate(zip(args, chosen, strict=True)):
        if c and isinstance(x, Ref):
            held = take(i, read_whole(x))
            cells.append((i, x, Cell(x.aval.update(inner_aval=aval_of(held)), held, trace, borrowed=True)))
            out.append(cells[-1][2])
        else:
            out.append(take(i, x) if c else x)
    for _, x, _ in cells:
        if type(x) is Cell:
            x._away = True
    try:
        yield out
    finally:
        for _, x, _ in cells:
            if type(x) is Cell:
                x._away = False
    for i, x, cell in cells:
        value, cell._value = cell._value, None
        if cell._written:
            write_whole(x, give(i, value))


def _parts(prim: Any, rule: Any, args: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """See `bedrax.core.tracing.Mutable`."""
    check_distinct(prim, [x for x in args if isinstance(x, Ref)])
    return parts_of_call(rule, args)


Ref.operation, Ref.inputs, Ref.parts = map(staticmethod, (_operation, _inputs, _parts))  # type: ignore[method-assign]
AbstractRef.pure = RefPrimitive.pure = NewRef.pure = staticmethod(discharged)  # type: ignore[method-assign]
