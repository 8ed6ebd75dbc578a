"""StableHLO of linear solves: the program of the solver."""

from bedrax.lax.primitives.solvers import linear_solve_p, solve_program
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(linear_solve_p)
def _linear_solve(ctx, *operands, jaxprs, const_lengths):
    program, arguments = solve_program(operands, jaxprs, const_lengths)
    return ctx.inline_jaxpr(program, *arguments)
