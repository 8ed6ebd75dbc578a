"""Partial sums of linear algebra: solutions and products are linear in the last operand."""

from bedrax.lax.primitives import linalg as p
from bedrax.parallel.explicit import sum_rules

sum_rules.rule(p.triangular_solve_p, p.tridiagonal_solve_p, p.ormqr_p)(lambda op, **params: ((len(op.types) - 1,),))
