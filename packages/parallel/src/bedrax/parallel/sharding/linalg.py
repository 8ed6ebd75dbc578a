"""The split of linear algebra with vectors, and its partial sums: solutions and products are linear in the last operand."""

import functools

from bedrax.lax.primitives import linalg as p
from bedrax.parallel.explicit import matrices, sharding_rules, sum_rules

for _prim, _ranks in (
    (p.householder_product_p, (2, 1)),
    (p.lu_pivots_to_permutation_p, (1,)),
    (p.ormqr_p, (2, 1, 2)),
    (p.tridiagonal_solve_p, (1, 1, 1, 2)),
):
    sharding_rules.add(_prim, functools.partial(matrices, ranks=_ranks))


@sharding_rules.rule(p.triangular_solve_p)
def _triangular_solve(op, *, left_side, **params):
    """The right-hand sides are independent of each other, so the axis that counts them may be split."""
    matrix, sides = op.specs
    n = len(sides)
    counts, solved = (n - 1, n - 2) if left_side else (n - 2, n - 1)
    op.unsplit(0, (n - 2, n - 1), "which is one of the matrix")
    op.unsplit(1, (solved,), "which is one of the solution")
    batch = op.joined([matrix[:-2], sides[:-2]])
    return [(*batch, None, sides[counts]) if left_side else (*batch, sides[counts], None)]


sum_rules.rule(p.triangular_solve_p, p.tridiagonal_solve_p, p.ormqr_p)(lambda op, **params: ((len(op.types) - 1,),))
