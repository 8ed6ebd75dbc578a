"""StableHLO of placement: annotations for the partitioner and for buffers in other memories."""

from itertools import chain
from typing import Any

from bedrax.lax.primitives.placement import inspect_sharding_p, reshard_p, shard_alike_p
from bedrax.parallel.specs import axes_of
from bedrax.xla_backend import sharding
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.layout import Layout
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(reshard_p)
def _reshard(ctx, x, *, to, src):
    kind = getattr(to, "memory_kind", None)
    if (
        kind is not None and ctx.platform != "cpu" and _elsewhere(to, src, kind)
    ):  # on the CPU, all memories are the same
        x = ctx.emit(
            "stablehlo.custom_call",
            (x,),
            call_target_name="annotate_device_placement",
            has_side_effect=True,
            api_version=ctx.i32(1),
            **{"mhlo.frontend_attributes": {"_xla_buffer_placement": kind}},
        )
    if to.layout is not None and to.layout is not Layout.AUTO:
        order = to.layout.major_to_minor[::-1]
        x = ctx.custom_call("LayoutConstraint", (x,), operand_layouts=[order], result_layouts=[order])
    split = getattr(to, "sharding", to)
    if hasattr(split, "_to_xla_hlo_sharding") and split.num_devices > 1 and ctx.program.num_partitions > 1:
        if ctx.program.manual is not None and hasattr(split, "spec"):
            _check_free(ctx.program.manual, split.spec)
        return ctx.program.partitioner.constrained(ctx, x, split)
    return x


def _check_free(manual: Any, spec: Any) -> None:
    """Raise ValueError if a spec inside a `shard_map` names an axis that is mapped there, or is not of its mesh."""
    free = [name for name in manual.mesh.axis_names if name not in manual.manual]
    for name in chain.from_iterable(map(axes_of, spec)):
        if name not in free:
            what = "which it maps" if name in manual.manual else "which its mesh does not have"
            raise ValueError(
                f"a sharding inside a shard_map names the axis {name!r}, {what}. It may name the axes that are left to the"
                f" compiler: {free}"
            )


def _elsewhere(to, src, kind) -> bool:
    """Whether a value changes its memory. A sharding may also name the default memory."""
    return to.assignment is None or kind != "device" or getattr(src, "memory_kind", kind) != kind


@lowering_rules.rule(shard_alike_p)
def _alike(ctx, x, y):
    return ctx.program.partitioner.alike(ctx, (x, y)) if ctx.program.num_partitions > 1 else [x, y]


@lowering_rules.rule(inspect_sharding_p)
def _inspect(ctx, x, *, callback):
    devices = ctx.program.devices
    if len(devices) == 1:
        callback(sharding.make_single_device_sharding(devices[0]))
    if len(devices) < 2:
        return []
    rank, mesh, device_list = x.type.rank, ctx.program.mesh, runtime.DeviceList(devices)

    def found(hlo, *_):  # called by the partitioner
        callback(sharding.from_hlo(hlo, device_list, mesh, rank))

    ctx.keep_alive(found)
    address = types.ir.StringAttr.get(runtime.encode_inspect_sharding_callback(found), types.context)
    ctx.emit(
        "stablehlo.custom_call",
        (x,),
        x.type,
        call_target_name="InspectSharding",
        has_side_effect=True,
        api_version=ctx.i32(1),
        backend_config=address,
    )
    return []
