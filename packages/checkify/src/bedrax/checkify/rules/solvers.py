"""Checks inside linear solves: the solver also returns its error; the solves of derivatives are not checked."""

from bedrax.checkify.errors import Error
from bedrax.checkify.trace import check_rules, checked, nan_checked
from bedrax.core.facts import fact
from bedrax.lax.primitives.solvers import linear_solve_p


@check_rules.rule(linear_solve_p, kind="program")
def _linear_solve(trace, *args, jaxprs, **params):
    matvec, vecmat, solve, transpose_solve = jaxprs
    program, spec = checked(solve, trace.kinds)
    matvec, vecmat, transpose_solve = (j and checked(j, frozenset())[0] for j in (matvec, vecmat, transpose_solve))
    count = len(spec.types())
    if not count:
        jaxprs = (matvec, vecmat, program, transpose_solve)
        return nan_checked(linear_solve_p)(trace, *args, jaxprs=jaxprs, **params)

    def solution_first():
        return program.replace(outvars=[*program.outvars[count:], *program.outvars[:count]])

    reports = fact(program, (_linear_solve, count), solution_first)
    out = linear_solve_p.bind(*args, jaxprs=(matvec, vecmat, reports, transpose_solve), **params)
    trace.collector.add(Error(spec, out[-count:]))
    return out[:-count]
