"""Checks inside control flow: loops carry the error, branches return it."""

import itertools
from collections.abc import Sequence
from typing import Any

from bedrax.checkify.errors import Error, aligned, first_of, joined
from bedrax.checkify.rules.calls import report
from bedrax.checkify.trace import check_rules, checked
from bedrax.core.facts import fact
from bedrax.core.ir import run
from bedrax.core.staging import program_of
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p


def _split(values: Sequence[Any], *edges: int) -> list[Sequence[Any]]:
    """The parts of `values` before, between and after these positions."""
    return [values[start:stop] for start, stop in itertools.pairwise([0, *edges, None])]


@check_rules.rule(scan_p)
def _scan(trace, *args, jaxpr, num_consts, num_carry, **params):
    body, spec = checked(jaxpr, trace.kinds)
    if not spec.failures:
        return scan_p.bind(*args, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **params)
    types, count = spec.types(), len(spec.types())

    def step(*values):
        consts, old, rest = values[:num_consts], values[num_consts:][:count], values[num_consts + count :]
        out = run(body, *consts, *rest)
        return [*first_of(old, out[:count]), *out[count:]]

    inner = [*body.in_avals[:num_consts], *types, *body.in_avals[num_consts:]]
    out = scan_p.bind(
        *args[:num_consts], *spec.no_error(), *args[num_consts:], num_consts=num_consts, num_carry=num_carry + count,
        jaxpr=fact(body, (_scan, num_consts), lambda: program_of(step, inner)), **params,
    )  # fmt: skip
    return report(trace, spec, out)


@check_rules.rule(while_p)
def _while(trace, *args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    (cond, cond_spec), (body, body_spec) = checked(cond_jaxpr, trace.kinds), checked(body_jaxpr, trace.kinds)
    spec = joined([cond_spec, body_spec])
    if not spec.failures:
        return while_p.bind(
            *args, cond_jaxpr=cond, cond_nconsts=cond_nconsts, body_jaxpr=body, body_nconsts=body_nconsts
        )
    count, in_cond, in_body = (len(each.types()) for each in (spec, cond_spec, body_spec))
    edge = cond_nconsts + body_nconsts

    def after_cond(old, consts, carry):
        """The earlier of the error `old` and that of the condition."""
        if not in_cond:
            return old
        return first_of(old, aligned(Error(cond_spec, run(cond, *consts, *carry)[:in_cond]), spec))

    def step(*values):
        consts, own, old, carry = _split(values, cond_nconsts, edge, edge + count)
        out = run(body, *own, *carry)
        error = first_of(old, aligned(Error(body_spec, out[:in_body]), spec)) if in_body else old
        return [*after_cond(error, consts, out[in_body:]), *out[in_body:]]

    def goes_on(*values):
        # The error of the condition is known: `step` computed it from the same values.
        consts, _, carry = _split(values, cond_nconsts, cond_nconsts + count)
        return run(cond, *consts, *carry)[in_cond:]

    def programs():
        consts, carried = cond.in_avals[:cond_nconsts], [*spec.types(), *body_jaxpr.out_avals]
        return (
            program_of(goes_on, [*consts, *carried]),
            program_of(step, [*consts, *body.in_avals[:body_nconsts], *carried]),
        )

    new_cond, new_body = fact(body, (_while, cond, cond_nconsts, body_nconsts), programs)
    cond_consts, init = args[:cond_nconsts], args[edge:]
    out = while_p.bind(
        *cond_consts, *args[:edge], *after_cond(spec.no_error(), cond_consts, init), *init,
        cond_jaxpr=new_cond, cond_nconsts=cond_nconsts, body_jaxpr=new_body, body_nconsts=edge,
    )  # fmt: skip
    return report(trace, spec, out)


@check_rules.rule(cond_p)
def _cond(trace, *args, branches, **params):
    found = [checked(b, trace.kinds) for b in branches]
    spec = joined([s for _, s in found])
    if not spec.failures:
        return cond_p.bind(*args, branches=tuple([b for b, _ in found]), **params)

    def reporting(program, own):
        def flat(*values):
            out, n = run(program, *values), len(own.types())
            return [*(aligned(Error(own, out[:n]), spec) if n else spec.no_error()), *out[n:]]

        return fact(program, (_cond, spec), lambda: program_of(flat, program.in_avals))

    return report(trace, spec, cond_p.bind(*args, branches=tuple([reporting(*pair) for pair in found]), **params))
