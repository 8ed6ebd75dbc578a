"""The split of reductions of windows: devices exchange what the windows of others cover."""

from bedrax.lax.primitives import windows as p
from bedrax.parallel.explicit import resized, sharding_rules, sum_rules

sharding_rules.rule(p.reduce_window_sum_p, p.reduce_window_max_p, p.reduce_window_min_p)(resized)


@sharding_rules.rule(p.select_and_scatter_add_p)
def _select_and_scatter_add(op, **params):
    """The result has the shape of the operand whose elements are selected."""
    return [op.specs[1]]


@sharding_rules.rule(p.select_and_gather_add_p)
def _select_and_gather_add(op, **params):
    spec = op.joined(op.specs[:2])
    return [tuple([op.kept(e, n, d) for d, (e, n) in enumerate(zip(spec, op.outs[0].shape, strict=True))])]


# The operand whose elements are selected determines the positions; the operation is not linear in this operand.
sum_rules.rule(p.select_and_scatter_add_p, p.select_and_gather_add_p)(lambda op, **params: ((0,),))
