"""Dependence of the parts of a program on some of its arguments. Differentiation splits programs by it."""

from __future__ import annotations

from typing import Any, NamedTuple

from bedrax.core.facts import cached
from bedrax.core.holders import settled
from bedrax.core.ir import Eqn, Jaxpr, Literal
from bedrax.core.tables import programs, with_programs


class Dependence(NamedTuple):
    """The parts of a program that depend on some of its arguments.

    Attributes:
      equations: for each equation, whether an operand depends on them.
      results: for each result, whether it depends on them.
      variables: the dependent variables.
    """

    equations: tuple[bool, ...]
    results: tuple[bool, ...]
    variables: frozenset[Any]


@cached
def dependents(jaxpr: Jaxpr, inputs: tuple[bool, ...]) -> Dependence:
    """The parts of a program that depend on the arguments marked in `inputs`."""
    marked = {v for v, m in zip(jaxpr.invars, inputs, strict=True) if m}
    flags = []
    for eqn in jaxpr.eqns:
        given = [type(v) is not Literal and v in marked for v in eqn.invars]
        flags.append(any(given))
        if flags[-1]:
            marked.update(v for v, m in zip(eqn.outvars, _dependent_results(eqn, given), strict=True) if m)
    return Dependence(tuple(flags), tuple(v in marked for v in jaxpr.outvars), frozenset(marked))


def _dependent_results(eqn: Eqn, given: list[bool]) -> list[bool]:
    """The results that depend on the marked operands, by the programs of the equation; all if it cannot shrink."""
    every = [True] * len(eqn.outvars)
    if not with_programs.states(eqn.primitive) or eqn.effects:
        return every
    uses = programs[eqn.primitive](eqn.params)
    known = {o for use in uses for o in use.operands}
    if any(m and o not in known for o, m in enumerate(given)):
        return every  # it chooses among the programs
    marks, found = settled(uses, given, lambda use, own: dependents(use.program, own).results)
    results = [False] * len(every)
    for use, own in zip(uses, found, strict=True):
        for r, m in zip(use.results, own, strict=True):
            if m and r is None:
                return every  # it decides how often another program runs
            if m:
                results[r] = True
        for o, r in use.carries:
            results[r] = results[r] or marks[o]
    return results
