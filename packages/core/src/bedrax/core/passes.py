"""Passes over programs: dependence on arguments, named axes, substitution of calls. Dead code: `bedrax.core.dead_code`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.tables import named_axes, programs, with_programs


def programs_in(eqn: Eqn) -> Iterator[Jaxpr]:
    """The programs that an equation holds."""
    return (use.program for use in programs[eqn.primitive](eqn.params))


def all_equations(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of a program and of the programs inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in programs_in(eqn):
            yield from all_equations(inner)


def called_program(prim, params: dict) -> Jaxpr | None:
    """The program that an operation applies to its operands for its results; None if it does anything else."""
    uses = programs[prim](params)
    if len(uses) != 1 or uses[0].operands is None:
        return None
    program, operands, results, *others = uses[0]
    straight = all(o == i for i, o in enumerate(operands)) and all(r == i for i, r in enumerate(results))
    return program if straight and not any(others) else None


@cached
def axes_of(jaxpr: Jaxpr) -> frozenset:
    """The named axes that operations in the program, or in a program that it holds, name."""
    found: set = set()
    for eqn in jaxpr.eqns:
        found.update(named_axes[eqn.primitive](eqn.params))
        for use in programs[eqn.primitive](eqn.params):
            found |= axes_of(use.program) - {name for name, _ in use.axes}
    return frozenset(found)


class Dependence(NamedTuple):
    """What depends on some of a program's arguments.

    Attributes:
      equations: for each equation, whether an operand does.
      results: for each result, whether it does.
      variables: those that do.
    """

    equations: tuple[bool, ...]
    results: tuple[bool, ...]
    variables: frozenset


@cached
def dependents(jaxpr: Jaxpr, inputs: tuple[bool, ...]) -> Dependence:
    """What depends on the arguments that are marked in `inputs`."""
    marked = {v for v, m in zip(jaxpr.invars, inputs, strict=True) if m}
    flags = []
    for eqn in jaxpr.eqns:
        given = [type(v) is not Literal and v in marked for v in eqn.invars]
        flags.append(any(given))
        if flags[-1]:
            marked.update(v for v, m in zip(eqn.outvars, _dependent_results(eqn, given), strict=True) if m)
    return Dependence(tuple(flags), tuple(v in marked for v in jaxpr.outvars), frozenset(marked))


def _dependent_results(eqn: Eqn, given: list[bool]) -> list[bool]:
    """The results that depend on the marked operands: of equations that can shrink, as their programs say."""
    every = [True] * len(eqn.outvars)
    if not with_programs.states(eqn.primitive) or eqn.effects:
        return every
    uses = programs[eqn.primitive](eqn.params)
    known = {o for use in uses for o in use.operands}
    if any(m and o not in known for o, m in enumerate(given)):
        return every  # it chooses among the programs
    operands, results = list(given), [False] * len(every)
    while True:
        before = operands.copy()
        for use in uses:
            found = dependents(use.program, tuple(o is not None and operands[o] for o in use.operands)).results
            for r, m in zip(use.results, found, strict=True):
                if m and r is None:
                    return every  # it decides how often another program runs
                if m:
                    results[r] = True
            for o, r in use.carries:
                operands[o] = results[r] = operands[o] or results[r]
        if operands == before:
            return results


@cached
def inline(jaxpr: Jaxpr, chosen: frozenset) -> Jaxpr:
    """The program with the calls of its programs by the `chosen` primitives replaced by their equations.

    Args:
      chosen: primitives that apply one program to their operands.
    """
    if not any(e.primitive in chosen for e in jaxpr.eqns):
        return jaxpr
    eqns: list[Eqn] = []
    constvars, consts = list(jaxpr.constvars), list(jaxpr.consts)
    names: dict = {}  # variables of the program whose equations a call's results became

    def expand(program: Jaxpr, env: dict) -> None:
        def read(atom):
            return atom if type(atom) is Literal else env.get(atom, atom)

        for eqn in program.eqns:
            invars = [read(v) for v in eqn.invars]
            inner = called_program(eqn.primitive, eqn.params) if eqn.primitive in chosen else None
            if inner is None:
                fresh = [Var(v.aval) for v in eqn.outvars]
                eqns.append(eqn.replace(invars=invars, outvars=fresh))
                env.update(zip(eqn.outvars, fresh, strict=True))
                continue
            below = dict(zip(inner.invars, invars, strict=True))
            for v, c in zip(inner.constvars, inner.consts, strict=True):
                below[v] = Var(v.aval)
                constvars.append(below[v])
                consts.append(c)
            expand(inner, below)
            results = [v if type(v) is Literal else below.get(v, v) for v in inner.outvars]
            env.update(zip(eqn.outvars, results, strict=True))

    expand(jaxpr, names)
    outvars = [v if type(v) is Literal else names.get(v, v) for v in jaxpr.outvars]
    return Jaxpr(jaxpr.invars, outvars, eqns, constvars, consts, debug_info=jaxpr.debug_info)
