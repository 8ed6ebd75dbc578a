"""Passes over programs: named axes, substitution of calls. Dead code: `bedrax.core.dead_code`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.tables import named_axes, nothing, programs

if TYPE_CHECKING:
    from bedrax.core.columns import Column
    from bedrax.core.tracing import Primitive


primitive_of: Final = operator.attrgetter("primitive")


def programs_in(eqn: Eqn) -> Iterator[Jaxpr]:
    """Return the programs that an equation holds."""
    return (use.program for use in programs[eqn.primitive](eqn.params))


def speaking(jaxpr: Jaxpr, *columns: Column) -> list[Eqn]:
    """Return the equations of primitives that have another rule than `nothing` in one of the columns."""
    primitives = set(map(primitive_of, jaxpr.eqns))
    found = {p for column in columns for p in primitives if column[p] is not nothing}
    return [e for e in jaxpr.eqns if e.primitive in found] if found else []


def all_equations(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of a program and of the programs inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in programs_in(eqn):
            yield from all_equations(inner)


def called_program(prim: Primitive, params: dict[str, Any]) -> Jaxpr | None:
    """Return the program that an operation applies to its operands; None if it does anything else."""
    uses = programs[prim](params)
    if len(uses) != 1 or uses[0].operands is None:
        return None
    program, operands, results, *others = uses[0]
    straight = all(o == i for i, o in enumerate(operands)) and all(r == i for i, r in enumerate(results))
    return program if straight and not any(others) else None


@cached
def primitive_of_references(jaxpr: Jaxpr) -> Primitive | None:
    """Return a primitive of the program, or of one inside it, that makes, reads or writes references; None: none."""
    for prim in set(map(primitive_of, jaxpr.eqns)):
        if prim.of_references:
            return prim
    for eqn in speaking(jaxpr, programs):
        for inner in programs_in(eqn):
            found = primitive_of_references(inner)
            if found is not None:
                return found
    return None


@cached
def axes_of(jaxpr: Jaxpr) -> frozenset[Any]:
    """Return the named axes of operations in the program, or in a program that it holds."""
    found: set[Any] = set()
    for eqn in speaking(jaxpr, named_axes, programs):
        found.update(named_axes[eqn.primitive](eqn.params))
        for use in programs[eqn.primitive](eqn.params):
            found |= axes_of(use.program) - {name for name, _ in use.axes}
    return frozenset(found)


@cached
def inline(jaxpr: Jaxpr, chosen: frozenset[Any], keeps: Callable[[Eqn], bool] | None = None) -> Jaxpr:
    """Return the program with calls by the `chosen` primitives replaced by the equations of the called programs.

    Args:
      chosen: primitives that apply one program to their operands.
      keeps: whether a call by such a primitive is not replaced. None: all are replaced.
    """
    replaced = lambda eqn: eqn.primitive in chosen and (keeps is None or not keeps(eqn))
    if not any(map(replaced, jaxpr.eqns)):
        return jaxpr
    eqns: list[Eqn] = []
    constvars, consts = list(jaxpr.constvars), list(jaxpr.consts)
    names: dict[Any, Any] = {}  # variable of `jaxpr` -> variable or literal of the result

    def expand(program: Jaxpr, env: dict, call: Any = None) -> None:
        known = env.get
        for eqn in program.eqns:
            invars = [v if type(v) is Literal else known(v, v) for v in eqn.invars]
            inner = called_program(eqn.primitive, eqn.params) if replaced(eqn) else None
            if inner is None:
                fresh = [Var(v.aval) for v in eqn.outvars]
                eqns.append(Eqn(eqn.primitive, invars, fresh, eqn.params, eqn.effects, eqn.source_info or call))
                env.update(zip(eqn.outvars, fresh, strict=True))
                continue
            below = dict(zip(inner.invars, invars, strict=True))
            for v, c in zip(inner.constvars, inner.consts, strict=True):
                below[v] = Var(v.aval)
                constvars.append(below[v])
                consts.append(c)
            expand(inner, below, eqn.source_info or call)
            results = [v if type(v) is Literal else below.get(v, v) for v in inner.outvars]
            env.update(zip(eqn.outvars, results, strict=True))

    expand(jaxpr, names)
    outvars = [v if type(v) is Literal else names.get(v, v) for v in jaxpr.outvars]
    return Jaxpr(jaxpr.invars, outvars, eqns, constvars, consts, debug_info=jaxpr.debug_info)
