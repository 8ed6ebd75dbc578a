"""StableHLO of markers."""

import numpy as np

from bedrax.lax.primitives import markers as p
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(p.create_token_p)
def _create_token(ctx):
    return ctx.emit("stablehlo.create_token", [])


@lowering_rules.rule(p.after_all_p)
def _after_all(ctx, *operands):
    return ctx.emit("stablehlo.after_all", operands)


@lowering_rules.rule(p.stage_p)
def _stage(ctx, x):
    return x


@lowering_rules.rule(p.dce_sink_p)
def _sink(ctx, *operands, prevent_mlir_dce):
    if prevent_mlir_dce:
        ctx.custom_call("dce_sink", operands, [], has_side_effect=True)
    return []


@lowering_rules.rule(p.platform_index_p)
def _platform_index(ctx, *, platforms):
    return ctx.constant(p.index_of_platform(ctx.platform, platforms), np.int32)
