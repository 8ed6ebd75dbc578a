"""StableHLO of placement: what the partitioner, and the buffers of other memories, are told."""

from bedrax.lax.primitives.placement import reshard_p
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(reshard_p)
def _reshard(ctx, x, *, to, src):
    kind = getattr(to, "memory_kind", None)
    if (
        kind is not None and ctx.platform != "cpu" and _elsewhere(to, src, kind)
    ):  # on the CPU, memories are the same one
        x = ctx.emit(
            "stablehlo.custom_call", (x,), call_target_name="annotate_device_placement", has_side_effect=True,
            api_version=ctx.i32(1), **{"mhlo.frontend_attributes": {"_xla_buffer_placement": kind}})  # fmt: skip
    if to.layout is not None:
        order = to.layout.major_to_minor[::-1]
        x = ctx.custom_call("LayoutConstraint", (x,), operand_layouts=[order], result_layouts=[order])
    split = getattr(to, "sharding", to)
    if hasattr(split, "_to_xla_hlo_sharding") and split.num_devices > 1 and ctx.program.num_partitions > 1:
        return ctx.program.partitioner.constrained(ctx, x, split)
    return x


def _elsewhere(to, src, kind) -> bool:
    """Whether a value changes its memory: a sharding names the usual one, too."""
    return to.assignment is None or kind != "device" or getattr(src, "memory_kind", kind) != kind
