"""The cumulative reductions in StableHLO: a loop on CPU, a parallel prefix scan on accelerators.

On CPU the loop compiles several times faster than the prefix scan, whose program grows with the
logarithm of the axis, and runs about as fast. (A `reduce_window` as long as the axis is slower than
both there.)
"""

from __future__ import annotations

from bedrax.core import dims
from bedrax.lax.primitives import cumulative as p
from bedrax.xla_backend.tables import lowering_rules, platform_rule


def _rows(prim):
    scan, loop = p.parallel(prim), p.sequential(prim)

    @lowering_rules.rule(prim, kind="composed")
    def lower(ctx, *operands, axis, **params):
        # The program of a prefix scan depends on the length, which therefore must be known.
        fun = scan if dims.is_constant_dim(ctx.avals_in[0].shape[axis]) else loop
        return ctx.lower_fun(fun, *operands, axis=axis, **params)

    platform_rule(prim, "cpu")(lambda ctx, *operands, **params: ctx.lower_fun(loop, *operands, **params))


for _prim in (p.cumsum_p, p.cumprod_p, p.cummax_p, p.cummin_p, p.cumlogsumexp_p, p.linear_recurrence_p):
    _rows(_prim)
