"""`device_put` inside traced programs: a primitive that the compiled program reads as a placement."""

from __future__ import annotations

from bedrax.core.tables import numpy_rules
from bedrax.core.tracing import Primitive
from bedrax.xla_backend import sharding
from bedrax.xla_backend.tables import lowering_rules

device_put_p = Primitive("device_put")
device_put_p.abstract_eval = lambda aval, where: aval


@device_put_p.def_impl
def _impl(x, *, where):
    from bedrax.xla_backend import placement

    return placement.device_put(x, where)


@numpy_rules.rule(device_put_p)
def _numpy(x, *, where):
    return x


@lowering_rules.rule(device_put_p)
def _lower(ctx, x, *, where):
    if (
        isinstance(where, sharding.Sharding)
        and len(where._device_assignment) > 1
        and ctx.program.num_partitions > 1
    ):
        return ctx.emit(
            "stablehlo.custom_call", (x,), x.type, call_target_name="Sharding", api_version=ctx.i32(1),
            **{"mhlo.sharding": str(where._to_xla_hlo_sharding(len(ctx.avals_in[0].shape)))})  # fmt: skip
    return x


sharding_constraint_p = Primitive("sharding_constraint")
sharding_constraint_p.abstract_eval = lambda aval, sharding: aval


@sharding_constraint_p.def_impl
def _constrain(x, *, sharding):
    from bedrax.xla_backend import placement

    return placement.to_sharding(x, sharding)


@numpy_rules.rule(sharding_constraint_p)
def _numpy_constrain(x, *, sharding):
    return x


@lowering_rules.rule(sharding_constraint_p)
def _lower_constraint(ctx, x, *, sharding):
    if ctx.program.num_partitions == 1:
        return x
    return ctx.emit(
        "stablehlo.custom_call", (x,), x.type, call_target_name="Sharding", api_version=ctx.i32(1),
        **{"mhlo.sharding": str(sharding._to_xla_hlo_sharding(len(ctx.avals_in[0].shape)))})  # fmt: skip
