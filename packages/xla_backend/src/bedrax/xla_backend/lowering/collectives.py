"""StableHLO of collectives over mesh axes. Collectives over an axis of `vmap` are already ordinary operations."""

from __future__ import annotations

import numpy as np

from bedrax.lax.primitives import collectives as p
from bedrax.lax.primitives.collectives import names_of
from bedrax.xla_backend.tables import lowering_rules


def _manual(ctx):
    found = ctx.program.manual
    if found is None:
        raise NotImplementedError(
            f"'{ctx.prim}' is outside of the shard_map, pmap or vmap that maps its axis; call the function under it"
        )
    return found


def _exchange(ctx, op: str, x, names, groups, result=None, regions=(), **attributes):
    """A collective among groups of devices, which are given by their positions in the mesh."""
    rows = np.asarray(_manual(ctx).groups(names, groups), np.int64)
    flat = ctx.parse("unit") if op != "stablehlo.all_to_all" else None
    return ctx.emit(
        op,
        (x,),
        x.type if result is None else result,
        regions,
        replica_groups=rows,
        channel_handle=_channel(ctx),
        use_global_device_ids=flat,
        **attributes,
    )


def _channel(ctx):
    ctx.program.channels += 1
    return ctx.parse(f"#stablehlo.channel_handle<handle = {ctx.program.channels}, type = 1>")


def _reduction(op: str, *prims) -> None:
    for prim in prims:

        @lowering_rules.rule(prim, kind=op)
        def _(ctx, x, *, axes, axis_index_groups, op=op):
            region = ctx.reducer_region(op, ctx.dtype(x))
            return _exchange(ctx, "stablehlo.all_reduce", x, axes, axis_index_groups, [x.type], (region,))[0]


_reduction("stablehlo.add", p.psum_p, p.psum_invariant_p)
_reduction("stablehlo.maximum", p.pmax_p)
_reduction("stablehlo.minimum", p.pmin_p)


@lowering_rules.rule(p.ppermute_p)
def _ppermute(ctx, x, *, axis_name, perm):
    rows = _manual(ctx).groups(names_of(axis_name))
    pairs = np.array([(row[s], row[d]) for row in rows for s, d in perm], np.int64).reshape(-1, 2)
    return ctx.emit(
        "stablehlo.collective_permute", (x,), x.type, source_target_pairs=pairs, channel_handle=_channel(ctx)
    )


def _with_axis(ctx, x, at: int, size: int = 1):
    shape = list(x.type.shape)
    return ctx.reshape(x, (*shape[:at], size, *shape[at:]))


@lowering_rules.rule(p.all_gather_p, p.all_gather_invariant_p)
def _all_gather(ctx, x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    if not tiled:
        x = _with_axis(ctx, x, all_gather_dimension)
    shape = list(x.type.shape)
    if not shape[all_gather_dimension]:  # StableHLO's operation takes no axis without elements
        return x
    shape[all_gather_dimension] *= axis_size
    result = [ctx.tensor_type(tuple(shape), ctx.dtype(x))]
    return _exchange(
        ctx,
        "stablehlo.all_gather",
        x,
        names_of(axis_name),
        axis_index_groups,
        result,
        all_gather_dim=all_gather_dimension,
    )[0]


@lowering_rules.rule(p.reduce_scatter_p)
def _reduce_scatter(ctx, x, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
    shape = list(x.type.shape)
    if not shape[scatter_dimension]:  # StableHLO's operation returns no axis without elements
        return x
    shape[scatter_dimension] //= axis_size
    region = ctx.reducer_region("stablehlo.add", ctx.dtype(x))
    out = _exchange(
        ctx,
        "stablehlo.reduce_scatter",
        x,
        names_of(axis_name),
        axis_index_groups,
        ctx.tensor_type(tuple(shape), ctx.dtype(x)),
        (region,),
        scatter_dimension=scatter_dimension,
    )
    return out if tiled else ctx.reshape(out, (*shape[:scatter_dimension], *shape[scatter_dimension + 1 :]))


@lowering_rules.rule(p.all_to_all_p)
def _all_to_all(ctx, x, *, split_axis, concat_axis, axis_name, axis_index_groups, tiled):
    if not tiled:  # a new axis holds the stacked pieces; the split axis is removed
        at = concat_axis if split_axis >= concat_axis else concat_axis + 1
        x = _with_axis(ctx, x, at)
        split, concat = split_axis + (at <= split_axis), at
    else:
        split, concat = split_axis, concat_axis
    size = (
        len(axis_index_groups[0])
        if axis_index_groups
        else int(np.prod([_manual(ctx).mesh.shape[n] for n in names_of(axis_name)]))
    )
    shape = list(x.type.shape)
    shape[split] //= size
    shape[concat] *= size
    (out,) = _exchange(
        ctx,
        "stablehlo.all_to_all",
        x,
        names_of(axis_name),
        axis_index_groups,
        [ctx.tensor_type(tuple(shape), ctx.dtype(x))],
        split_dimension=split,
        concat_dimension=concat,
        split_count=size,
    )
    if tiled:
        return out
    shape = list(out.type.shape)
    del shape[split]
    return ctx.reshape(out, shape)


lowering_rules.add(p.axis_index_p, lambda ctx, *, axis_name: _manual(ctx).numbers[axis_name])
lowering_rules.add(p.pvary_p, lambda ctx, x, *, axes: x, kind="identity")
lowering_rules.add(p.cast_p, lambda ctx, x, **params: x, kind="identity")
