"""TensorFlow for linear solves: the solver's program, in place."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives.solvers import linear_solve_p, solve_program


@tf_rules.rule(linear_solve_p, kind="program")
def _linear_solve(ctx, *args, jaxprs, const_lengths):
    program, operands = solve_program(args, jaxprs, const_lengths)
    return ctx.run(program, *operands)
