"""Moves of values with partial sums, and results that are partial sums.

Over a manual axis, these are collectives of `shard_map`. Over an explicit axis, they are `reshard`, whose lowering has
the exchange.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import executors, staging
from bedrax.core.avals import aval_of
from bedrax.core.tracing import Tracer
from bedrax.lax.primitives import collectives
from bedrax.lax.primitives.placement import anywhere, free, moved, reshard_p
from bedrax.parallel import mapping, meshes
from bedrax.parallel.explicit import ShardingTypeError
from bedrax.parallel.specs import PartitionSpec, UnreducedKind, axes_of
from bedrax.parallel.sums import tidy, without_axes

_NO_AXES: frozenset[Any] = frozenset()
_TOTAL: dict[Any, Callable[..., Any]] = {
    UnreducedKind.sum: lax.psum,
    UnreducedKind.max: lax.pmax,
    UnreducedKind.min: lax.pmin,
}


def _spec(split: Any) -> PartitionSpec:
    return PartitionSpec() if split is None else split.spec


def move(x: Any, to: Any) -> Any:
    """`x` at a place, where one of the two types has partial sums or sums.

    Raises:
      ValueError: parts of a maximum or minimum are to be made.
    """
    aval = aval_of(x)
    wanted = to.sharding_of_type(aval)
    old, new = _spec(aval.split), _spec(wanted)
    _check_kind(old, new)
    split = wanted if aval.split is None else aval.split
    manual = frozenset(split.mesh.manual_axes) if split is not None else _NO_AXES
    if manual:
        x = _in_blocks(x, old, new, manual, split.mesh)
        aval = aval_of(x)
        if aval.split == wanted:
            return x
    if isinstance(x, Tracer) and aval.split is None is wanted:
        return x
    return reshard_p.bind(x, to=to, src=aval.split or anywhere)


def _check_kind(old: PartitionSpec, new: PartitionSpec) -> None:
    if new.unreduced_kind in (None, UnreducedKind.sum) and (
        new.unreduced_kind in (None, old.unreduced_kind) or not old.unreduced & new.unreduced
    ):
        return
    if new.unreduced_kind is old.unreduced_kind and new.unreduced <= old.unreduced:
        return
    raise ValueError(
        f"reshard: parts of kind {new.unreduced_kind.name} over {sorted(map(str, new.unreduced))} are results of"
        f" operations with out_sharding=P(..., unreduced={{...}}), such as lax.reduce_max; a value with the spec {old}"
        " can only become partial sums"
    )


def _in_blocks(x: Any, old: PartitionSpec, new: PartitionSpec, manual: frozenset[Any], mesh: Any = None) -> Any:
    """Change the partial sums over manual axes."""
    done = (old.unreduced - new.unreduced) & manual
    if done:
        x = _TOTAL[old.unreduced_kind](x, tuple(sorted(done, key=str)))
    parts = (new.unreduced - old.unreduced) & manual
    varying = parts & aval_of(x).vma
    for name in sorted(parts - varying, key=str):  # the value on the first device, zeros on the others
        first = lax.eq(lax.axis_index(name), np.int32(0))
        x = lax.select_n(first, lax.full_like(x, 0), x)
    return collectives.cast(x, parts, "unreduced", new.unreduced_kind, mesh)


def in_parts(x: Any, axes: frozenset[Any], mesh: Any) -> Any:
    """A whole value as partial sums over manual axes: the value on the first device, zeros on the others."""
    return _in_blocks(x, PartitionSpec(), PartitionSpec(unreduced=axes), axes, mesh)


def result(fun: Callable[..., Any], where: Any, operands: Sequence[Any]) -> Any:
    """``fun(*operands)`` at a place, where that or an operand has partial sums.

    Over an axis over which the result is to be partial sums, each device computes ``fun`` of its blocks; `fun` is linear
    in what is split or partial over it. An axis that splits a dimension of these results does so after that, too.
    """
    types = [aval_of(x) for x in operands]
    out = staging.program_of(lambda *xs: [fun(*xs)], [_plain(t) for t in types]).out_avals[0]
    to = executors.get().resolve(where, "out_sharding", out, typed=True)
    split = to.sharding_of_type(out)
    spec = _spec(split)
    carried = frozenset(a for t in types for a in _named(t))
    manual = frozenset(split.mesh.manual_axes) if split is not None else _NO_AXES
    axes = (spec.unreduced & carried) - manual
    if not axes or not all(getattr(t, "size", 1) for t in types):  # arrays without elements need no exchange
        held = any(_spec(t.split).unreduced for t in types if t.is_array)
        x = fun(*operands) if held or manual & spec.unreduced else fun(*map(free, operands))
        return moved(x, to)
    mesh = to.mesh
    keep = frozenset(mesh.axis_names) - axes
    inner = without_axes(spec, axes)
    parts = PartitionSpec(unreduced=axes, unreduced_kind=spec.unreduced_kind)

    def on_blocks(*blocks):
        place = tidy(split.update(mesh=_with_manual(split.mesh, axes)), inner)
        x = fun(*blocks) if place is None else lax.placed_result(place, fun, *blocks)
        return x if aval_of(x).shape != out.shape else _in_blocks(x, _spec(aval_of(x).split), parts, axes)

    def out_specs(blocks, _):
        return [_assembled(block, out, mesh, axes, spec) for block in blocks]

    in_specs = tuple(without_axes(_spec(t.split), keep) for t in types)
    mapped = mapping.map_blocks(on_blocks, tuple(operands), lambda *_: in_specs, out_specs, mesh, axes, True)
    aval = aval_of(mapped)
    return mapped if aval.split == to.sharding_of_type(aval) else moved(mapped, to)


def _assembled(block: Any, out: Any, mesh: Any, axes: frozenset[Any], spec: PartitionSpec) -> PartitionSpec:
    """The spec of the results of blocks: partial sums, or those of a dimension that operands are split along."""
    if block.shape == out.shape:
        return PartitionSpec(unreduced=axes, unreduced_kind=spec.unreduced_kind)
    held = _spec(block.split).unreduced & axes
    cut = [d for d, (n, m) in enumerate(zip(out.shape, block.shape, strict=True)) if n != m]
    over = tuple(n for n in mesh.axis_names if n in axes - held)
    (d, *others) = cut
    if others or math.prod(mesh.shape[n] for n in over) * block.shape[d] != out.shape[d]:
        raise ShardingTypeError(
            f"out_sharding={spec}: the result of blocks of the operands has shape {block.shape}, and is neither partial sums"
            f" of the result of shape {out.shape} nor a block of it over {over}. Split the operands along what is summed"
        )
    kind = spec.unreduced_kind if held else None
    return PartitionSpec(*[None] * d, over, unreduced=held, unreduced_kind=kind)


def _with_manual(mesh: Any, axes: frozenset[Any]) -> Any:
    return mesh.update_axis_types({name: meshes.AxisType.Manual for name in mesh.axis_names if name in axes})


def _named(aval: Any) -> list[Any]:
    spec = _spec(getattr(aval, "split", None))
    return [*spec.unreduced, *(a for e in spec for a in axes_of(e))]


@functools.lru_cache(4096)
def _plain(aval: Any) -> Any:
    return aval.update(sharding=None) if aval.is_array and aval.split is not None else aval
