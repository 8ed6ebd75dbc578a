"""StableHLO of markers."""

import numpy as np

from bedrax.lax.primitives import markers as p
from bedrax.xla_backend.lowering import hints
from bedrax.xla_backend.tables import lowering_rules

lowering_rules.add(p.create_token_p, lambda ctx: ctx.emit("stablehlo.create_token", []))
lowering_rules.add(p.after_all_p, lambda ctx, *operands: ctx.emit("stablehlo.after_all", operands))
lowering_rules.add(p.stage_p, lambda ctx, x: x)


@lowering_rules.rule(p.hint_p)
def _hint(ctx, x, *, pairs):
    hints.mark_all(x, getattr(x.owner, "operands", ()), pairs)
    return x


@lowering_rules.rule(p.dce_sink_p)
def _sink(ctx, *operands, prevent_mlir_dce):
    if prevent_mlir_dce:
        ctx.custom_call("dce_sink", operands, [], has_side_effect=True)
    return []


@lowering_rules.rule(p.platform_index_p)
def _platform_index(ctx, *, platforms):
    return ctx.constant(p.index_of_platform(ctx.platform, platforms), np.int32)
