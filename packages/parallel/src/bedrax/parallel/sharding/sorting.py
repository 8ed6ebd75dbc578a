"""The split of sorted arrays: not along the sorted axis."""

from bedrax.lax.primitives import sorting as p
from bedrax.parallel.explicit import along_axis, sharding_rules

sharding_rules.add(p.sort_p, along_axis)


@sharding_rules.rule(p.approx_top_k_p)
def _approx_top_k(op, *, reduction_dimension, **params):
    return _top_k(op, axis=reduction_dimension)


@sharding_rules.rule(p.top_k_p)
def _top_k(op, *, axis=-1, **params):
    spec = op.specs[0]
    op.unsplit(0, (axis % len(spec),), "along which it works")
    return [spec] * len(op.outs)
