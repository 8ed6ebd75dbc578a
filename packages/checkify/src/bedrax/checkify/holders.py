"""Checks inside operations that hold programs: the programs are checked, and the operation returns their error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bedrax.checkify.errors import Error, Spec, aligned, first_of, joined, no_error
from bedrax.checkify.trace import check_rules, checked
from bedrax.core.facts import fact
from bedrax.core.holders import Held, Reporting, Reports, of_uses, reporting, roles
from bedrax.core.ir import Jaxpr, run
from bedrax.core.staging import program_of
from bedrax.core.tables import Use, programs
from bedrax.core.tracing import Primitive


class _Checked(NamedTuple):
    """Makes programs that return the leaves of one error, of `spec`, before their results."""

    kinds: Any
    spec: Spec

    def __call__(self, program: Jaxpr) -> tuple[Jaxpr, bool]:
        program, own = checked(program, self.kinds)
        if not own.failures or own == self.spec:
            return program, bool(own.failures)
        count = len(own.types())

        def flat(*values):
            out = run(program, *values)
            return [*aligned(Error(own, out[:count]), self.spec), *out[count:]]

        return fact(program, (_Checked, self.spec), lambda: program_of(flat, program.in_avals)), True


@of_uses
def _checking(uses: Sequence[Use], operands: int, kinds: Any) -> tuple[Spec, Reports, Reporting | Held]:
    """The possible errors of an operation that holds programs, and the operation that returns its error."""
    found = [checked(use.program, kinds) for use in uses]
    spec = joined([own for _, own in found])
    how = Reports(_Checked(kinds, spec), tuple(spec.types()), no_error, first_of)
    if not spec.failures:
        return spec, how, Held(tuple([program for program, _ in found]), *roles(uses, operands), ())
    return spec, how, reporting(uses, operands, how)


def programs_rule(prim: Primitive) -> Callable[..., list[Any]]:
    """Return the rule of an operation that holds programs: these are checked, and the operation returns their error."""

    def rule(trace, *args, **params):
        uses = programs[prim](params)
        found = _checking.known(uses, len(args), trace.kinds)
        if found is None:
            for use in uses:
                checked(use.program, trace.kinds)  # here: programs may be nested deeply, few frames for each
            found = _checking(uses, len(args), trace.kinds)
        spec, how, operation = found
        if not spec.failures:
            return list(operation.bind(prim, params, operand=args).values())
        error, results = operation.bind(prim, params, args, how)
        trace.collector.add(Error(spec, error))
        return results

    return rule


def checks_programs(*prims: Primitive) -> None:
    """Register the row of operations that hold programs, see `programs_rule`."""
    for prim in prims:
        check_rules.add(prim, programs_rule(prim), kind="program")
