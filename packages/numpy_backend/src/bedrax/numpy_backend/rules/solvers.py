"""NumPy evaluation of linear solves: run the solver."""

from bedrax.lax.primitives.solvers import linear_solve_p, solve_program
from bedrax.numpy_backend.program_source import evaluate
from bedrax.numpy_backend.tables import numpy_rules


@numpy_rules.rule(linear_solve_p, kind="program")
def _linear_solve(*args, jaxprs, const_lengths):
    program, operands = solve_program(args, jaxprs, const_lengths)
    return evaluate(program, *operands)
