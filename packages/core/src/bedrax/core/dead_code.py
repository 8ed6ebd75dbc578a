"""Dead code elimination: programs without unused equations, arguments and results.

An equation that holds programs shrinks when only some of its results are used. The rule follows from the
programs that its primitive declares (`bedrax.core.tables.programs`, `with_programs`). An operand is needed if a program
uses its argument. A result that a loop carries is needed if a round of a needed program reads it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from bedrax.core.columns import Column
from bedrax.core.effects import OperandEffect
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.tables import effect_rules, programs, wires, with_programs


def kept(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """Return the values whose flag is set."""
    return [v for v, f in zip(values, flags, strict=True) if f]


def dce_with(
    jaxpr: Jaxpr, used: Sequence[bool], keep_inputs: bool = True, read_after: Sequence[bool] | None = None
) -> tuple[Jaxpr, list[bool]]:
    """Remove equations that no used result (and no effect) needs.

    Args:
      used: a flag per result; the results without it are dropped.
      keep_inputs: keep arguments that turn out unused.
      read_after: a flag per argument: if it can be written to, whether it is read after the program. An operation that
        only reads or writes values is then removed if its results are unused and its writes are not read later. None:
        every operation with an effect stays.

    Returns:
      (smaller program, or the same one if nothing is removed; which arguments it uses).
    """
    live: set[Var] = {v for v, u in zip(jaxpr.outvars, used, strict=True) if u and type(v) is not Literal}
    left: list[Eqn] = []
    read_later = set(jaxpr.constvars)
    if read_after is not None:
        read_later.update(kept(jaxpr.invars, read_after))
    for eqn in reversed(jaxpr.eqns):
        wanted = [v in live for v in eqn.outvars]
        if not any(wanted) and (not eqn.effects or (read_after is not None and _only_moves(eqn, read_later))):
            continue
        read_later.update(eqn.invars[e.position] for e in eqn.effects if isinstance(e, OperandEffect))
        rule = None if all(wanted) else dead_code_rules.find(eqn.primitive)
        if rule is not None:
            needed, shrunk = rule(eqn, wanted)
            if shrunk is None:
                continue
            left.append(shrunk)
            live.update(v for v, n in zip(eqn.invars, needed, strict=True) if n and type(v) is not Literal)
        else:
            left.append(eqn)
            live.update(v for v in eqn.invars if type(v) is not Literal)
    left.reverse()
    used_in = [v in live for v in jaxpr.invars]
    if (
        all(used)
        and (keep_inputs or all(used_in))
        and live.issuperset(jaxpr.constvars)
        and len(left) == len(jaxpr.eqns)
        and all(map(operator.is_, left, jaxpr.eqns))
    ):
        return jaxpr, used_in
    constants = [(v, c) for v, c in zip(jaxpr.constvars, jaxpr.consts, strict=True) if v in live]
    return (
        Jaxpr(
            [v for v, u in zip(jaxpr.invars, used_in, strict=True) if u or keep_inputs],
            kept(jaxpr.outvars, used),
            left,
            [v for v, _ in constants],
            [c for _, c in constants],
            debug_info=jaxpr.debug_info,
        ),
        used_in,
    )


def _only_moves(eqn: Eqn, read_later: set) -> bool:
    """Return whether all effects of an equation are on values, and none changes a value that is read later."""
    return all(
        isinstance(e, OperandEffect) and not (e.writes and eqn.invars[e.position] in read_later) for e in eqn.effects
    )


def dce_for(jaxpr: Jaxpr, used: tuple[bool, ...], keep_inputs: bool = False) -> tuple[Jaxpr, tuple[bool, ...]]:
    """Call `dce_with`; cached. Unless `keep_inputs`, unused arguments are dropped, too."""
    smaller, used_in = _smaller(jaxpr, used, keep_inputs)
    return (jaxpr if smaller is None else smaller), used_in


@cached
def _smaller(jaxpr: Jaxpr, used: tuple[bool, ...], keep_inputs: bool) -> tuple[Jaxpr | None, tuple[bool, ...]]:
    """Call `dce_with`. None stands for the same program: a program that keeps itself is freed late."""
    smaller, used_in = dce_with(jaxpr, used, keep_inputs)
    return (None if smaller is jaxpr else smaller), tuple(used_in)


def dce(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program without unused equations, with the same arguments and results."""
    return dce_with(jaxpr, [True] * len(jaxpr.outvars))[0]


live: Final = cached(dce)


def _shrink_programs(eqn: Eqn, used: Sequence[bool]) -> tuple[list[bool], Eqn]:
    """Apply the rule that follows from the declared programs."""
    uses = programs[eqn.primitive](eqn.params)
    carried = dict(pair for use in uses for pair in use.carries)  # operand -> result
    wanted = list(used)
    while True:
        flags = [tuple([r is None or wanted[r] for r in use.results]) for use in uses]
        found = [dce_for(use.program, f) for use, f in zip(uses, flags, strict=True)]
        read = {
            o
            for use, (_, used_in) in zip(uses, found, strict=True)
            for o, u in zip(use.operands, used_in, strict=True)
            if u
        }
        grown = [r for o, r in carried.items() if o in read and not wanted[r]]
        if not grown:
            break
        for r in grown:
            wanted[r] = True
    given = {o for use in uses for o in use.operands}
    needed = [wanted[carried[o]] if o in carried else o in read or o not in given for o in range(len(eqn.invars))]
    smaller = []
    for use, (program, used_in), f in zip(uses, found, flags, strict=True):
        stays = tuple([o is None or needed[o] for o in use.operands])
        if stays != used_in:
            program, _ = dce_for(use.program, f, True)
            if not all(stays):
                program = program.replace(invars=kept(program.invars, stays))
        smaller.append(program)
    if all(needed) and all(wanted) and all(use.program is program for use, program in zip(uses, smaller, strict=True)):
        return needed, eqn
    operands, results = wires(uses, len(eqn.invars), len(eqn.outvars))
    params = with_programs[eqn.primitive](eqn.params, smaller, kept(operands, needed), kept(results, wanted))
    invars = kept(eqn.invars, needed)
    effects = frozenset(effect_rules[eqn.primitive](*(v.aval for v in invars), **params))
    # A carry that is needed inside only is an unused result.
    return needed, Eqn(eqn.primitive, invars, kept(eqn.outvars, wanted), params, effects, eqn.source_info)


def _from_programs(prim) -> Callable | None:
    return _shrink_programs if programs.states(prim) and with_programs.states(prim) else None


# A primitive that has no rule is kept as it is if any of its results is used.
dead_code_rules: Final = Column(
    "dead code",
    signature="rule(eqn, used results) -> (which operands are used, new equation or None)",
    otherwise=_from_programs,
    otherwise_kind="programs",
)
