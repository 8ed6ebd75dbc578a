"""Checks inside control flow: loops carry the error, branches return it."""

from bedrax.checkify.errors import Error, aligned, first_of, joined
from bedrax.checkify.rules.calls import report
from bedrax.checkify.trace import check_rules, checked
from bedrax.core.facts import fact
from bedrax.core.ir import run
from bedrax.core.staging import program_of
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p


@check_rules.rule(scan_p)
def _scan(trace, *args, jaxpr, num_consts, num_carry, **params):
    body, spec = checked(jaxpr, trace.kinds)
    if not spec.failures:
        return scan_p.bind(*args, jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry, **params)
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
            *args, cond_jaxpr=cond_jaxpr, cond_nconsts=cond_nconsts, body_jaxpr=body_jaxpr, body_nconsts=body_nconsts
        )
    count, edge = len(spec.types()), cond_nconsts + body_nconsts
    cond_consts, init = args[:cond_nconsts], args[edge:]

    def looked(consts, carry):
        """What fails in the condition."""
        n = len(cond_spec.types())
        return aligned(Error(cond_spec, run(cond, *consts, *carry)[:n]), spec) if n else None

    def step(*values):
        consts, own = values[:cond_nconsts], values[cond_nconsts:edge]
        old, carry, n = values[edge : edge + count], values[edge + count :], len(body_spec.types())
        out = run(body, *own, *carry)
        error = first_of(old, aligned(Error(body_spec, out[:n]), spec)) if n else list(old)
        after = looked(consts, out[n:])
        return [*(error if after is None else first_of(error, after)), *out[n:]]

    def goes_on(*values):
        n = len(cond_spec.types())  # what fails in it was looked at with the values that it gets
        return run(cond, *values[:cond_nconsts], *values[cond_nconsts + count :])[n:]

    before = looked(cond_consts, init)
    carried = [v.aval for v in body_jaxpr.outvars]
    consts = cond_jaxpr.in_avals[:cond_nconsts]
    out = while_p.bind(
        *cond_consts, *args[:edge], *(spec.no_error() if before is None else before), *init,
        cond_jaxpr=program_of(goes_on, [*consts, *spec.types(), *carried]), cond_nconsts=cond_nconsts,
        body_jaxpr=program_of(step, [*consts, *body_jaxpr.in_avals[:body_nconsts], *spec.types(), *carried]),
        body_nconsts=edge,
    )  # fmt: skip
    return report(trace, spec, out)


@check_rules.rule(cond_p)
def _cond(trace, *args, branches, **params):
    found = [checked(b, trace.kinds) for b in branches]
    spec = joined([s for _, s in found])
    if not spec.failures:
        return cond_p.bind(*args, branches=branches, **params)

    def reporting(program, own):
        def flat(*values):
            out, n = run(program, *values), len(own.types())
            return [*(aligned(Error(own, out[:n]), spec) if n else spec.no_error()), *out[n:]]

        return fact(program, (_cond, spec), lambda: program_of(flat, program.in_avals))

    return report(trace, spec, cond_p.bind(*args, branches=tuple([reporting(*pair) for pair in found]), **params))
