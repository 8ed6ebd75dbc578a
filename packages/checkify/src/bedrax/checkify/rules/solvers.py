"""Checks inside linear solves: the solver reports, beside what it returns; the solves of derivatives do not."""

from bedrax.checkify.errors import Error
from bedrax.checkify.trace import check_rules, checked, nan_checked
from bedrax.lax.primitives.solvers import linear_solve_p


@check_rules.rule(linear_solve_p, kind="program")
def _linear_solve(trace, *args, jaxprs, **params):
    matvec, vecmat, solve, transpose_solve = jaxprs
    program, spec = checked(solve, trace.kinds)
    if not spec.failures:
        return nan_checked(linear_solve_p)(trace, *args, jaxprs=jaxprs, **params)
    count = len(spec.types())
    program = program.replace(outvars=[*program.outvars[count:], *program.outvars[:count]])  # the solution is first
    out = linear_solve_p.bind(*args, jaxprs=(matvec, vecmat, program, transpose_solve), **params)
    trace.collector.add(Error(spec, out[-count:]))
    return out[:-count]
