"""NumPy evaluation of linear solves: run the solver."""

from bedrax.core.executors import evaluate
from bedrax.core.primitives.solvers import linear_solve_p, solve_program
from bedrax.core.tables import numpy_rules


@numpy_rules.rule(linear_solve_p, kind="program")
def _linear_solve(*args, jaxprs, const_lengths):
    program, operands = solve_program(args, jaxprs, const_lengths)
    return evaluate(program, *operands)
