"""StableHLO of special functions: CHLO's operations where it has them."""

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import special as p
from bedrax.xla_backend.tables import lowering_rules, nary, unary

unary(
    p.erf_inv_p, "chlo.erf_inv",
    p.lgamma_p, "chlo.lgamma",
    p.digamma_p, "chlo.digamma",
)  # fmt: skip


@lowering_rules.rule(p.erf_p, kind="chlo.erf")
def _erf(ctx, x):
    out = ctx.emit("chlo.erf", (x,))
    if ctx.program.partitioner.shardy:  # which does not know this operation, and would gather its operand
        ctx.program.partitioner.alike(ctx, (x, out))
    return out


@lowering_rules.rule(p.erfc_p, kind="chlo.erfc")
def _erfc(ctx, x):
    aval = ctx.avals_in[0]
    if dtypes.finfo(aval.dtype).bits >= 16:
        return ctx.emit("chlo.erfc", (x,))
    # CHLO's expansion, unlike those of its other functions, does not widen smaller floats.
    wide = np.dtype(np.float32)
    out = ctx.emit("chlo.erfc", (ctx.convert(x, wide),), aval.update(dtype=wide))
    return ctx.convert(out, aval.dtype)


nary(
    p.polygamma_p, "chlo.polygamma",
    p.zeta_p, "chlo.zeta",
)  # fmt: skip
