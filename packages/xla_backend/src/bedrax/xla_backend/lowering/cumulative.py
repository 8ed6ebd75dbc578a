"""The cumulative reductions in StableHLO: a loop on CPU, a parallel prefix scan on accelerators.

On CPU the loop compiles several times faster than the prefix scan, whose program grows with the
logarithm of the axis, and runs about as fast. A `reduce_window` as long as the axis is slower than
both on CPU.
"""

from bedrax.lax.primitives import cumulative as p
from bedrax.xla_backend.tables import platform_rule


def _row(prim):
    loop = p.sequential(prim)
    platform_rule(prim, "cpu")(lambda ctx, *operands, **params: ctx.lower_fun(loop, *operands, **params))


for _prim in (p.cumsum_p, p.cumprod_p, p.cummax_p, p.cummin_p, p.cumlogsumexp_p, p.linear_recurrence_p):
    _row(_prim)
