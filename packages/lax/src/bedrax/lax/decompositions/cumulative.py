"""Cumulative reductions: a parallel prefix scan if the length is known, else one position after the other."""

from __future__ import annotations

from bedrax.core import dims
from bedrax.lax.primitives import cumulative as p
from bedrax.lax.tables import decompositions


def _rows(prim) -> None:
    scan, loop = p.parallel(prim), p.sequential(prim)

    @decompositions.rule(prim)
    def either(*operands, axis, reverse):
        # The program of a prefix scan depends on the length, which therefore must be known.
        fun = scan if dims.is_constant_dim(operands[0].shape[axis]) else loop
        return fun(*operands, axis=axis, reverse=reverse)


for _prim in (p.cumsum_p, p.cumprod_p, p.cummax_p, p.cummin_p, p.cumlogsumexp_p, p.linear_recurrence_p):
    _rows(_prim)
