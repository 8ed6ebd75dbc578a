"""StableHLO of special functions: CHLO's operations where it has them, programs where not."""

from __future__ import annotations

import numpy as np

from bedrax.core import dtypes
from bedrax.core import special_programs as programs
from bedrax.core.primitives import special as p
from bedrax.xla_backend.tables import lower_fun, lowering_rules, nary, unary

unary(
    p.erf_p, "chlo.erf",
    p.erf_inv_p, "chlo.erf_inv",
    p.lgamma_p, "chlo.lgamma",
    p.digamma_p, "chlo.digamma",
)  # fmt: skip


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
lower_fun(p.igamma_p, programs.widened(programs.igamma))
lower_fun(p.igammac_p, programs.widened(programs.igammac))
lower_fun(p.igamma_grad_a_p, programs.widened(programs.igamma_grad_a))
lower_fun(p.random_gamma_grad_p, programs.widened(programs.random_gamma_grad))
lower_fun(p.regularized_incomplete_beta_p, programs.widened(programs.betainc))
lower_fun(p.bessel_i0e_p, programs.widened(programs.bessel_i0e))
lower_fun(p.bessel_i1e_p, programs.widened(programs.bessel_i1e))
