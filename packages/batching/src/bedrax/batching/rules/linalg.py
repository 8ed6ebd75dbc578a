"""Batching of linear algebra: every primitive has batch axes in front, so a mapped axis becomes one more.

A system with one matrix and many right sides is solved in one call, with the mapped axis among the columns.
"""

from bedrax.batching.tables import batch_rules, to_front
from bedrax.lax.axes import cut_axis, merge_axes, move_axis, rank_of
from bedrax.lax.primitives import linalg as p


def _in_front(prim):
    def rule(axis, args, dims, **params):
        out = prim.bind(*(to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)), **params)
        return (out, [0] * len(out)) if prim.multiple_results else (out, 0)

    batch_rules.add(prim, rule, "batch axes")
    return rule


for _prim in (
    p.cholesky_p,
    p.cholesky_update_p,
    p.lu_p,
    p.lu_pivots_to_permutation_p,
    p.qr_p,
    p.geqrf_p,
    p.geqp3_p,
    p.householder_product_p,
    p.ormqr_p,
    p.eig_p,
    p.eigh_p,
    p.svd_p,
    p.schur_p,
    p.hessenberg_p,
    p.tridiagonal_p,
    p.symmetric_product_p,
):
    _in_front(_prim)


def _solve(prim, along_rows):
    """A rule for ``prim(*matrix, b)``; `along_rows(params)`: whether the unknowns run along the rows' axis of `b`."""

    def rule(axis, args, dims, **params):
        *matrix, b = args
        if any(d is not None for d in dims[:-1]):
            return prim.bind(*(to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)), **params), 0
        # b becomes [..., m, n * size], or [..., n * size, m].
        at = rank_of(b) - 1 if along_rows(params) else rank_of(b) - 2
        b = move_axis(b, dims[-1], at)
        before = at - 1  # the axis into which the mapped one is merged
        out = prim.bind(*matrix, merge_axes(b, before), **params)
        return cut_axis(out, before, None, axis.size), at

    batch_rules.add(prim, rule, "solve")


_solve(p.triangular_solve_p, lambda params: params["left_side"])
_solve(p.tridiagonal_solve_p, lambda params: True)
