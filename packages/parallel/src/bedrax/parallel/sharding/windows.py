"""The split of reductions of windows: along axes with windows of size 1."""

from bedrax.lax.primitives import windows as p
from bedrax.parallel.explicit import sharding_rules, sum_rules


@sharding_rules.rule(p.reduce_window_sum_p, p.reduce_window_max_p, p.reduce_window_min_p)
def _reduce_window(op, *, window_dimensions, window_strides, **params):
    op.unsplit(0, [d for d, n in enumerate(window_dimensions) if n != 1], "over which windows extend")
    return [op.specs[0]]


# The operand whose elements are selected decides where the others go; it is not linear in this one.
sum_rules.rule(p.select_and_scatter_add_p, p.select_and_gather_add_p)(lambda op, **params: ((0,),))
