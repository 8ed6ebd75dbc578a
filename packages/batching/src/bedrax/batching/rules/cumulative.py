"""Batching of the cumulative reductions: along the same axis, for any mapped axis."""

from bedrax.batching.rules.shaping import common_dim
from bedrax.batching.tables import batch_rules, to_axis
from bedrax.lax.primitives import cumulative as p


def _rule(prim):
    def rule(axis_data, args, dims, *, axis, reverse):
        dim = common_dim(dims)
        args = [to_axis(x, d, axis_data.size, dim) for x, d in zip(args, dims)]
        return prim.bind(*args, axis=axis + (axis >= dim), reverse=reverse), dim

    batch_rules.add(prim, rule)


for _prim in (p.cumsum_p, p.cumprod_p, p.cummax_p, p.cummin_p, p.cumlogsumexp_p, p.linear_recurrence_p):
    _rule(_prim)
