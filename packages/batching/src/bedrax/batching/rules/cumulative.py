"""Batching of the cumulative reductions: along the same axis, whatever the mapped one is."""

from __future__ import annotations

from bedrax.batching.tables import batch_rules
from bedrax.core.primitives import cumulative as p


def _rule(prim):
    def rule(axis_data, args, dims, *, axis, reverse):
        (x,), (dim,) = args, dims
        return prim.bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    batch_rules.add(prim, rule)


for _prim in (p.cumsum_p, p.cumprod_p, p.cummax_p, p.cummin_p, p.cumlogsumexp_p):
    _rule(_prim)
