"""StableHLO of `shard_map`: a part of the module that every device runs on its own blocks.

The operands are annotated with how they are split, converted to blocks, and the results back; in between, the partitioner
leaves everything alone that concerns the mapped axes. What a device is called along an axis it reads off an operand: the
numbers of all, split over the axis.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core.effects import ordered_effects
from bedrax.core.passes import all_equations
from bedrax.core.tables import named_axes
from bedrax.lax.primitives.collectives import axis_index_p, ragged_all_to_all_p
from bedrax.parallel.primitives import in_blocks, inside, manual_sizes, shard_map_p
from bedrax.parallel.specs import PartitionSpec, axes_of
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.lowering.types import type_of
from bedrax.xla_backend.tables import lowering_rules


@functools.lru_cache(1024)
def split(mesh: Any, spec: PartitionSpec, rank: int, manual: tuple[str, ...]) -> runtime.HloSharding:
    """The sharding of an array of `rank` that `spec` splits, inside a part of a module that is manual along some axes."""
    counts, order = [], []
    for entry in [axes_of(e) for e in spec] + [()] * (rank - len(spec)):
        counts.append(int(np.prod([mesh.shape[n] for n in entry], dtype=int)))
        order += entry
    kinds = []
    for kind, names in (
        ("MANUAL", [n for n in mesh.axis_names if n in manual]),
        ("REPLICATED", [n for n in mesh.axis_names if n not in manual and n not in order]),
    ):
        size = int(np.prod([mesh.shape[n] for n in names], dtype=int))
        if names:
            counts.append(size)
            kinds.append(runtime.OpSharding.Type.__members__[kind])
        order += names
    if len(kinds) == 1 and all(c == 1 for c in counts[:-1]):
        return runtime.HloSharding.manual() if manual else runtime.HloSharding.replicate()
    return runtime.HloSharding.iota_tile(
        dims=counts, reshape_dims=list(mesh.axis_sizes),
        transpose_perm=[mesh.axis_names.index(n) for n in order], subgroup_types=kinds,
    )  # fmt: skip


def _annotated(ctx, v: Any, target: str, sharding: Any, result: Any, open_dims: Sequence[int]) -> Any:
    """`v` through a custom call that the partitioner knows; it may split the dimensions `open_dims` further."""
    return ctx.emit(
        "stablehlo.custom_call", (v,), result, call_target_name=target,
        backend_config=f"unspecified_dims=[{','.join(map(str, open_dims))}]" if open_dims else "",
        **{"mhlo.sharding": str(sharding)},
    )  # fmt: skip


@lowering_rules.rule(shard_map_p)
def _shard_map(ctx, *operands, jaxpr, mesh, in_specs, out_specs, manual, check_vma):
    program = ctx.program
    outer = program.manual
    if program.num_partitions == 1:  # one device does what all would do
        params = dict(
            jaxpr=jaxpr, mesh=mesh, in_specs=in_specs, out_specs=out_specs, manual=manual, check_vma=check_vma
        )
        return ctx.lower_fun(in_blocks, *operands, **params)
    around = () if outer is None else outer.manual
    within = (*around, *manual)
    free = len(within) < len(mesh.axis_names)

    def enter(v, spec, aval):
        rank = v.type.rank
        dims = range(rank) if free else ()
        v = _annotated(ctx, v, "Sharding", split(mesh, spec, rank, around), v.type, dims)
        return _annotated(ctx, v, "SPMDFullToShardShape", split(mesh, _NOTHING, rank, within), type_of(aval), dims)

    def leave(v, spec, aval):
        rank = v.type.rank
        dims = range(rank) if free else ()
        v = _annotated(ctx, v, "Sharding", split(mesh, _NOTHING, rank, within), v.type, dims)
        return _annotated(ctx, v, "SPMDShardToFullShape", split(mesh, spec, rank, around), type_of(aval), dims)

    blocks = [enter(v, s, a) for v, s, a in zip(operands, in_specs, jaxpr.in_avals, strict=True)]
    sizes = manual_sizes(mesh, manual)
    numbers = dict(outer.numbers) if outer is not None else {}
    for name in sorted(_numbered(jaxpr) & set(manual)):
        every = ctx.constant(np.arange(sizes[name], dtype=np.int32))
        own = enter(every, PartitionSpec(name), ctx.tensor_type((1,), np.dtype(np.int32)))
        numbers[name] = ctx.reshape(own, ())

    def body(block, arguments):
        program.manual = Manual(mesh, within, dict(zip(numbers, arguments[len(blocks) :], strict=True)))
        try:
            with inside(dict(mesh=mesh, manual=manual, check_vma=check_vma)):
                return ctx.inline_in(block, jaxpr, arguments[: len(blocks)])
        finally:
            program.manual = outer

    given = [*blocks, *numbers.values()]
    if any(e in ordered_effects for e in jaxpr.effects):
        out = body(ctx.block, given)  # whose tokens are those of the function around us
    else:
        # A function of its own: XLA merges equal operations within one, and one that were both inside and outside would
        # be annotated both as a block and as a whole, at which the partitioner aborts.
        symbol = program.unique_symbol("shard_map_body")
        results = [type_of(a) for a in jaxpr.out_avals]
        program.function(symbol, [v.type for v in given], results, body)
        out = ctx.emit("func.call", given, results, callee=ctx.symbol(symbol))
    return [leave(v, s, a) for v, s, a in zip(out, out_specs, ctx.avals_out, strict=True)]


_NOTHING = PartitionSpec()


def _numbered(jaxpr) -> set:
    """The axes along which a device asks for its number, or an operation that is made of others will."""
    return {
        n for e in all_equations(jaxpr) if e.primitive in (axis_index_p, ragged_all_to_all_p)
        for n in named_axes[e.primitive](e.params)
    }  # fmt: skip


class Manual:
    """What collectives need to know where they are lowered.

    Attributes:
      mesh: the devices' axes.
      manual: the axes that are mapped.
      numbers: axis -> this device's number along it.
    """

    __slots__ = ("manual", "mesh", "numbers")

    def __init__(self, mesh: Any, manual: tuple[str, ...], numbers: dict[str, Any]):
        self.mesh, self.manual, self.numbers = mesh, manual, numbers

    @property
    def free(self) -> tuple[str, ...]:
        """The axes that are not mapped."""
        return tuple(n for n in self.mesh.axis_names if n not in self.manual)

    def groups(self, names: Sequence[str], chosen: Sequence[Sequence[int]] | None = None) -> np.ndarray:
        """The numbers of the devices that take part together: a row for each group, ordered along the axes `names`.

        Args:
          chosen: groups of indices along the axes, if not all of them are one.
        """
        ids = np.arange(self.mesh.size).reshape(self.mesh.axis_sizes)
        places = [self.mesh.axis_names.index(n) for n in names]
        rows = np.moveaxis(ids, places, range(-len(places), 0)).reshape(
            -1, int(np.prod([ids.shape[i] for i in places]))
        )
        return rows if chosen is None else np.concatenate([row[np.asarray(chosen)] for row in rows])
