"""Lift operations that hold programs: bind the same operation with transformed programs.

`bedrax.core.tables.programs` declares the programs of an operation and how it applies them. This module derives from
it the role of each operand and result (`bedrax.core.tables.wires`), the marks that a loop gives its carry (`settled`),
and the operation that holds derived programs (`held`, `lifted`). A rule that uses this module computes no positions of
operands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bedrax.core.dead_code import dce_with
from bedrax.core.facts import fact
from bedrax.core.ir import Jaxpr, Var, run
from bedrax.core.staging import close_over, program_of
from bedrax.core.tables import CARRY, CONSTANT, Use, Wire, programs, wires, with_programs
from bedrax.core.tracing import Primitive


class of_uses:
    """Decorator for functions ``(uses, *hashable) -> result``: each result is a fact of the first program."""

    def __init__(self, derive: Callable[..., Any]):
        functools.update_wrapper(self, derive)
        self.derive = derive

    def known(self, uses: Sequence[Use], *args: Any) -> Any:
        """Return the result if it was derived before, or None."""
        return uses[0].program.cache.get((self.derive, uses[0][1:], tuple(uses[1:]), args))

    def __call__(self, uses: Sequence[Use], *args: Any) -> Any:
        key = (self.derive, uses[0][1:], tuple(uses[1:]), args)
        return fact(uses[0].program, key, lambda: self.derive(uses, *args))


@of_uses
def roles(uses: Sequence[Use], operands: int) -> tuple[list[Wire], list[Wire]]:
    """Return the roles of the operands (`operands`: their number) and results: see `bedrax.core.tables.wires`."""
    return wires(uses, operands, len({r for use in uses for r in use.results if r is not None}))


# ---- marks


def marked(mark: Any) -> bool:
    """Return whether a mark is set: it is neither None nor False."""
    return mark is not None and mark is not False


def arguments(use: Use, marks: Sequence[Any]) -> tuple[Any, ...]:
    """Return the marks of a program's arguments, given those of the operands."""
    return tuple([None if o is None else marks[o] for o in use.operands])


def settled(
    uses: Sequence[Use], marks: Sequence[Any], found: Callable[..., Any], carried: Any = True
) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the smallest marks with which each part of a carry has the same mark before and after a round.

    Args:
      marks: of the operands.
      found: ``(use, marks of the program's arguments) -> marks of its results``.
      carried: the mark of a part of a carry that a round marks.

    Returns:
      (marks of the operands, marks of the results of each program).
    """
    marks = list(marks)
    carries = [pair for use in uses for pair in use.carries]
    while True:
        out = [found(use, arguments(use, marks)) for use in uses]
        results = {
            r for use, own in zip(uses, out, strict=True) for r, m in zip(use.results, own, strict=True) if marked(m)
        }
        # A result that the operation does not return decides about the next round: all carries depend on it.
        if None in results:
            results.update(r for use in uses for o, r in use.carries if _changes(use, o, r))
        grown = [o for o, r in carries if not marked(marks[o]) and r in results]
        if not grown:
            return tuple(marks), out
        for o in grown:
            marks[o] = carried


def _changes(use: Use, operand: int, result: int) -> bool:
    program = use.program
    return program.invars[use.operands.index(operand)] is not program.outvars[use.results.index(result)]


# ---- operations that hold other programs


class Body(NamedTuple):
    """A program for an operation to hold.

    Attributes:
      arguments: the source of each argument, an operand. See `bedrax.core.tables.Wire`.
      results: the source of each result; None for a result that the operation does not return.
    """

    program: Jaxpr
    arguments: Sequence[tuple[str, int]]
    results: Sequence[tuple[str, int] | None]


class Held(NamedTuple):
    """An operation with new programs: its programs, and its operands and results in order.

    Attributes:
      consts: the values that the programs close over; they are among the operands.
      straight: whether operands and results are those of the old operation, in order.
    """

    programs: tuple[Jaxpr, ...]
    operands: tuple[Wire, ...]
    results: tuple[Wire, ...]
    consts: tuple[Any, ...]
    straight: bool = False

    def bind(self, prim: Primitive, params: dict[str, Any], **values: Sequence[Any]) -> dict[tuple[str, int], Any]:
        """Bind the operation.

        Args:
          params: of the operation that held the other programs.
          values: the operands, by the name of their sources.

        Returns:
          The results, by source.
        """
        values["const"] = self.consts
        args = [values[w.source[0]][w.source[1]] for w in self.operands]
        out = prim.bind(*args, **with_programs[prim](params, self.programs, self.operands, self.results))
        return {w.source: x for w, x in zip(self.results, out, strict=True)}


def held(uses: Sequence[Use], bodies: Sequence[Body], operands: Sequence[Wire], results: Sequence[Wire]) -> Held:
    """Return the operation that holds the programs of `bodies` in place of those of `uses`.

    Operands and results of one kind stay in the given order. A program need not name an operand that it must take.
    Values of a trace that the programs close over become operands.
    """
    alike = all(use[1:] == uses[0][1:] for use in uses)
    consts: list[Any] = []
    extra: list[Wire] = []
    named: list[Body] = []
    for n, body in enumerate(bodies):
        program, values = close_over(body.program, every=False)
        added = [("const", len(consts) + i) for i in range(len(values))]
        readers = tuple(range(len(uses))) if alike else (n,)
        extra += [Wire(CONSTANT, source, readers) for source in added]
        consts += values
        named.append(Body(program, (*added, *body.arguments), body.results))
    operands = sorted([*extra, *operands], key=lambda w: (w.kind, w.readers))
    results = sorted(results, key=lambda w: w.kind)
    types = {s: v.aval for body in named for s, v in zip(body.arguments, body.program.invars, strict=True)}
    made = []
    for n, body in enumerate(named):
        taken = dict(zip(body.arguments, body.program.invars, strict=True))
        given = dict(zip(body.results, body.program.outvars, strict=True))
        invars = [taken.get(w.source) or Var(types[w.source]) for w in operands if n in w.readers]
        outvars = [given[None]] if None in given else [given[w.source] for w in results]
        changed = invars != body.program.invars or outvars != body.program.outvars
        made.append(body.program.replace(invars=invars, outvars=outvars) if changed else body.program)
    straight = [w.source for w in operands] == sources("operand", range(len(operands)))
    straight = straight and [w.source for w in results] == sources("result", range(len(results)))
    return Held(tuple(made), tuple(operands), tuple(results), tuple(consts), straight)


def sources(name: str, numbers: Sequence[int | None]) -> list[Any]:
    """Return the sources of some operands or results."""
    return [None if i is None else (name, i) for i in numbers]


# ---- values with marks


class Lifted(NamedTuple):
    """An operation on values with marks.

    Attributes:
      held: the operation.
      programs: the derived programs.
      marks, out_marks: of the operands and the results.
      decision: the mark of the value that decides about the next round; None if no program returns one.
    """

    held: Held
    programs: tuple[Jaxpr, ...]
    marks: tuple[Any, ...]
    out_marks: tuple[Any, ...]
    decision: Any


@of_uses
def lifted(
    uses: Sequence[Use], marks: tuple[Any, ...], derive: Callable[..., Any], pairs: bool = False, carried: Any = True
) -> Lifted:
    """Derive an operation that holds programs, for values with marks.

    Args:
      marks: of the operands.
      derive: ``(program, marks of its arguments, needed) -> (derived program, marks of its results)``. `needed` is
        None, or a flag per result that needs the mark `carried`.
      pairs: whether a value with a mark has a companion (a tangent, say). A derived program takes one for each marked
        argument after its arguments, and returns one for each marked result after its results. It has the role of its
        value. A program whose results the operation does not return is not derived.
      carried: the mark of a part of a carry that a round marks.

    Returns:
      The operation. The sources of companions are named "companion".
    """

    def derived(use: Use, own: tuple, force: tuple | None = None) -> tuple:
        if pairs and use.results == (None,):
            return use.program, (False,)
        return derive(use.program, own, force)

    made: list[tuple] = []

    def found_in(use: Use, own: tuple) -> tuple:
        made.append(derived(use, own))
        return made[-1][1]

    marks, found = settled(uses, marks, found_in, carried)
    last = made[-len(uses) :]  # the results for the final marks
    chosen = {r for use in uses for o, r in use.carries if marked(marks[o])}
    if len(uses) > 1:
        chosen.update(r for use, own in zip(uses, found, strict=True) for r, m in zip(use.results, own) if marked(m))
    bodies, out_marks = [], {}
    for use, (program, own) in zip(uses, last, strict=True):
        force = tuple([r is not None and r in chosen for r in use.results])
        if not all([m == carried for m, f in zip(own, force, strict=True) if f]):
            program, own = derived(use, arguments(use, marks), force)
        out_marks.update(zip(use.results, own, strict=True))
        takes, gives = sources("operand", use.operands), sources("result", use.results)
        if pairs and gives != [None]:
            takes += [("companion", o) for o in use.operands if marked(marks[o])]
            gives += [("companion", r) for r, m in zip(use.results, own, strict=True) if marked(m)]
        bodies.append(Body(program, takes, gives))
    decision = out_marks.pop(None, None)
    operands, results = roles(uses, len(marks))
    if pairs:
        operands = operands + _companions(operands, [body.arguments for body in bodies])
        results = results + _companions(results, [body.results for body in bodies])
    found = held(uses, bodies, operands, results)
    of_results = tuple([out_marks[r] for r in range(len(out_marks))])
    return Lifted(found, tuple([body.program for body in bodies]), marks, of_results, decision)


def _companions(values: Sequence[Wire], named: Sequence[Sequence]) -> list[Wire]:
    """The companions that programs name, each in the role of its value."""
    companions = [w._replace(source=("companion", w.source[1])) for w in values]
    return [w for w in companions if any(w.source in names for names in named)]


def lift(
    prim: Primitive,
    params: dict[str, Any],
    args: Sequence[Any],
    marks: Sequence[Any],
    derive: Callable[..., Any],
    companions: Sequence[Any] | None = None,
    carried: Any = True,
    prepare: Callable[..., Any] | None = None,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Bind an operation that holds programs to values with marks, see `lifted`.

    Args:
      companions: one per operand; those of operands without a mark are not used. None: values have no companions.
      prepare: ``(operation) -> (operands, companions)`` in place of `args` and `companions`, if these depend on marks.

    Returns:
      (results, their marks, companions of the results, None for those that have none).
    """
    uses = programs[prim](params)
    marks, pairs = tuple(marks), companions is not None
    found = lifted.known(uses, marks, derive, pairs, carried)
    if found is None:
        for use in uses:
            if not (pairs and use.results == (None,)):
                derive(
                    use.program, arguments(use, marks), None
                )  # here: programs may be nested deeply, few frames for each
        found = lifted(uses, marks, derive, pairs, carried)
    if prepare is not None:
        args, companions = prepare(found)
    out = found.held.bind(prim, params, operand=args, companion=companions or ())
    numbers = range(len(found.out_marks))
    return [out["result", r] for r in numbers], list(found.out_marks), [out.get(("companion", r)) for r in numbers]


# ---- programs that report


class Reports(NamedTuple):
    """The functions for programs that report, see `reporting`. Equal values make the same programs.

    Attributes:
      of: ``program -> (program, whether it reports)``. A program that reports returns the leaves of a report
        before its results.
      types: of the leaves of a report.
      none: ``types -> leaves`` of an empty report.
      join: ``(leaves, leaves) -> leaves`` of two reports, the earlier one first.
    """

    of: Callable[..., Any]
    types: tuple[Any, ...]
    none: Callable[..., Any]
    join: Callable[..., Any]


class Reporting(NamedTuple):
    """An operation whose programs report.

    Attributes:
      held: the operation.
      rounds: whether programs run in rounds, whose reports are joined.
      test: the program that decides whether there is a first round, and its operands, if it reports.
    """

    held: Held
    rounds: bool
    test: tuple[Jaxpr, tuple[int, ...]] | None

    def bind(
        self, prim: Primitive, params: dict[str, Any], args: Sequence[Any], how: Reports
    ) -> tuple[list[Any], list[Any]]:
        """Bind the operation: the leaves of its report, and its results."""
        first, count = how.none(how.types) if self.rounds else [], len(how.types)
        if self.test is not None:
            program, operands = self.test
            first = how.join(first, run(program, *(args[o] for o in operands))[:count])
        out = self.held.bind(prim, params, operand=args, again=args, report=first)
        return [out["report", i] for i in range(count)], [out["result", r] for r in range(len(out) - count)]


@of_uses
def reporting(uses: Sequence[Use], operands: int, how: Reports) -> Reporting:
    """Derive an operation whose programs report: a call and a branch return the report, a loop carries it.

    The report of a program that decides about the next round is part of the report of the round before.
    """
    n = len(how.types)
    found = [how.of(use.program) for use in uses]
    rounds = any(use.carries or use.rounds is not None for use in uses)
    ins, outs = roles(uses, operands)
    reports = sources("report", range(n))
    outs = [*(Wire(CARRY if rounds else CONSTANT, source) for source in reports), *outs]
    if rounds:
        ins = [*(Wire(CARRY, source, tuple(range(len(uses)))) for source in reports), *ins]
    test = None
    for use, (program, has_report) in zip(uses, found, strict=True):
        if use.results == (None,) and has_report:
            test = program, use.operands
    bodies = []
    for number, (use, (program, has_report)) in enumerate(zip(uses, found, strict=True)):
        takes, gives = sources("operand", use.operands), sources("result", use.results)
        if use.results == (None,):
            bodies.append(Body(dce_with(program, [False] * (n * has_report) + [True])[0], takes, gives))
            continue
        again = [o for o in test[1] if o not in use.operands] if test else []
        if rounds:
            program = _round(use, program, has_report, test, again, how)
            ins = [*ins, *(Wire(CONSTANT, source, (number,)) for source in sources("again", again))]
            takes = [*reports, *takes, *sources("again", again)]
        elif not has_report:
            program = program_of(lambda *xs, own=program: [*how.none(how.types), *run(own, *xs)], program.in_avals)
        bodies.append(Body(program, takes, [*reports, *gives]))
    return Reporting(held(uses, bodies, ins, outs), rounds, test)


def _round(use: Use, program: Jaxpr, has_report: bool, test: tuple | None, again: list, how: Reports) -> Jaxpr:
    """A round that joins its report to the one it takes; then the test of the next round reports."""
    n, edge = len(how.types), len(how.types) + len(use.operands)
    carried = {o: use.results.index(r) for o, r in use.carries}

    def step(*values):
        report, args, consts = values[:n], values[n:edge], dict(zip(again, values[edge:], strict=True))
        out = run(program, *args)
        if has_report:
            report, out = how.join(report, out[:n]), out[n:]
        if test is not None:
            given = [out[carried[o]] if o in carried else consts[o] for o in test[1]]
            report = how.join(report, run(test[0], *given)[:n])
        return [*report, *out]

    tested = dict(zip(test[1], test[0].in_avals, strict=True)) if test else {}
    return program_of(step, [*how.types, *program.in_avals, *(tested[o] for o in again)])
