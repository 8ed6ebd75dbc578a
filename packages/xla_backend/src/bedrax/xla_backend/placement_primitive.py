"""Placement inside traced programs: `device_put` and `with_sharding_constraint` as primitives.

On one device both are the identity; over several, the partitioner reads them as what the sharding says.
"""

from __future__ import annotations

from bedrax.autodiff.tables import Zero, jvp_rules, linear, transpose_rules
from bedrax.batching.tables import batch_rules
from bedrax.core.tracing import Primitive
from bedrax.numpy_backend.tables import numpy_rules
from bedrax.xla_backend import sharding
from bedrax.xla_backend.tables import lowering_rules

device_put_p = Primitive("device_put")
device_put_p.abstract_eval = lambda aval, where, src: aval


@device_put_p.def_impl
def _impl(x, *, where, src):
    from bedrax.xla_backend import placement

    return placement.device_put(x, where)


@numpy_rules.rule(device_put_p)
def _numpy(x, *, where, src):
    return x


@lowering_rules.rule(device_put_p)
def _lower(ctx, x, *, where, src):
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


def _with_dimension(where, position: int):
    """The placement of a batch of what `where` places: its new dimension is not split."""
    if isinstance(where, sharding.NamedSharding):
        spec = list(where.spec)
        if position < len(spec):
            return where.update(spec=sharding.PartitionSpec(*spec[:position], None, *spec[position:]))
    return where


@batch_rules.rule(device_put_p)
def _batch(axis, args, dims, *, where, src):
    where, src = (_with_dimension(s, dims[0]) for s in (where, src))
    return device_put_p.bind(args[0], where=where, src=src), dims[0]


@batch_rules.rule(sharding_constraint_p)
def _batch_constraint(axis, args, dims, *, sharding):
    return sharding_constraint_p.bind(args[0], sharding=_with_dimension(sharding, dims[0])), dims[0]


@jvp_rules.rule(device_put_p, kind="linear")
def _jvp(primals, tangents, *, where, src):
    (x,), (t,) = primals, tangents
    if src is None:  # where the cotangent goes back to
        src = getattr(x, "sharding", None)
    placed = device_put_p.bind(x, where=where, src=src)
    return placed, Zero(t.aval) if type(t) is Zero else device_put_p.bind(t, where=where, src=src)


@transpose_rules.rule(device_put_p, kind="linear")
def _transpose(ct, x, *, where, src):
    return [device_put_p.bind(ct, where=src, src=where)]


linear(sharding_constraint_p, lambda ct, x, *, sharding: [sharding_constraint_p.bind(ct, sharding=sharding)])
