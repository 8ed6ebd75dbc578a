"""StableHLO of special functions: CHLO's operations where it has them."""

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import special as p
from bedrax.xla_backend.tables import lowering_rules, nary, unary

unary(p.erf_inv_p, "chlo.erf_inv", p.lgamma_p, "chlo.lgamma", p.digamma_p, "chlo.digamma")


@lowering_rules.rule(p.erf_p, kind="chlo.erf")
def _erf(ctx, x):
    out = ctx.emit("chlo.erf", (x,))
    if ctx.program.partitioner.shardy:  # Shardy does not support this operation, and would gather its operand
        ctx.program.partitioner.alike(ctx, (x, out))
    return out


@lowering_rules.rule(p.erfc_p, kind="chlo.erfc")
def _erfc(ctx, x, *, accuracy=None):
    aval = ctx.avals_in[0]
    # The error of CHLO's expansion for float32 is tens of units in the last place, and it has no accuracy attribute.
    # A call with a higher accuracy is computed in float64, which meets every tolerance that float32 can meet.
    wide = np.dtype(np.float32 if accuracy is None else np.float64)
    if dtypes.finfo(aval.dtype).bits >= (16 if accuracy is None else 64):
        return ctx.emit("chlo.erfc", (x,))
    # The expansion, unlike those of CHLO's other functions, does not widen floats of less than 16 bits.
    out = ctx.emit("chlo.erfc", (ctx.convert(x, wide),), aval.update(dtype=wide))
    return ctx.convert(out, aval.dtype)


nary(p.polygamma_p, "chlo.polygamma", p.zeta_p, "chlo.zeta")
