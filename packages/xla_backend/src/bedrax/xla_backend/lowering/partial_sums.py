"""StableHLO of values with partial sums over explicit axes.

In a module, such a value is the part that each device holds, annotated as if it were equal along the axes. Only
operations inside a part of the module that is mapped over the axes read it, so the partitioner never relies on that. An
operation that is linear is the same operation on the parts. `reshard` has the exchange: a sum over devices, a sum that
leaves each device its block, or zeros where another device holds the value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import tables as core_tables
from bedrax.core.avals import ShapedArray
from bedrax.lax.primitives import collectives
from bedrax.lax.primitives.placement import reshard_p
from bedrax.parallel.explicit import whole_operands
from bedrax.parallel.primitives import shard_map_p
from bedrax.parallel.specs import PartitionSpec, UnreducedKind, axes_of
from bedrax.parallel.sums import tidy, without_axes
from bedrax.xla_backend.lowering.program import LoweringContext
from bedrax.xla_backend.lowering.shard_map import on_blocks
from bedrax.xla_backend.lowering.types import type_of
from bedrax.xla_backend.tables import lowering_rules

_NOTHING = PartitionSpec()
_TOTAL = {
    UnreducedKind.sum: collectives.psum_p,
    UnreducedKind.max: collectives.pmax_p,
    UnreducedKind.min: collectives.pmin_p,
}


def lower(ctx: LoweringContext, values: Sequence[Any], run: Callable[..., Any]) -> Any:
    """The results of an equation with partial sums. ``run(ctx, values)`` lowers it without them."""
    prim = ctx.prim
    mapped = () if ctx.program.manual is None else ctx.program.manual.manual
    splits = [a.split for a in (*ctx.avals_in, *ctx.avals_out) if getattr(a, "split", None) is not None]
    axes = frozenset().union(*(s.spec.unreduced for s in splits)).difference(mapped)
    if prim is shard_map_p or core_tables.programs[prim](ctx.params):
        return run(ctx, values)  # operations inside have the parts
    inner = [[_on_device(a) for a in avals] for avals in (ctx.avals_in, ctx.avals_out)]

    def part(block, arguments, whole=()):
        own = LoweringContext(block, prim, *inner, ctx.params, ctx.location, ctx.effects, ctx.line, ctx.scope)
        return run(own, [_on_first(own, v, parts) if i in whole else v for i, v in enumerate(arguments)])

    if not axes:
        return part(ctx.block, values)  # inside a part already
    mesh = splits[0].mesh
    if prim is reshard_p:
        (value,) = values
        return run(ctx, [_exchanged(ctx, value, mesh, mapped)])
    parts = tuple(n for n in mesh.axis_names if n in axes)
    sizes = [getattr(a, "size", 1) for a in ctx.avals_in]
    whole = [i for i in whole_operands(prim, ctx.avals_in, ctx.avals_out, ctx.params) if sizes[i]]
    if not whole and not all(sizes):
        return part(ctx.block, values)  # each device computes with its parts; those without elements have no blocks
    # If no dimension is split, each device computes alone, and the partitioner exchanges nothing.
    unsplit = not mesh.auto_axes and not any(axes_of(e) for s in splits for e in s.spec)
    manual = tuple(n for n in mesh.axis_names if n not in mapped) if unsplit else parts

    def body(block, arguments):
        out = part(block, arguments, whole)
        return out if type(out) is list or type(out) is tuple else [out]

    types = [[type_of(a) for a in avals] for avals in inner]
    nothing = [[_NOTHING] * len(t) for t in types]
    numbered = parts if whole else ()
    out = on_blocks(ctx, values, nothing[0], types[0], nothing[1], types[1], mesh, manual, numbered, body)
    return out if prim.multiple_results else out[0]


def constant_in_parts(block: Any, v: Any, aval: ShapedArray) -> Any:
    """A constant of the program that is partial sums, from its value."""
    split = aval.split
    if split.spec.unreduced_kind is not UnreducedKind.sum:
        return v  # the maximum and the minimum of equal parts
    mapped = () if block.program.manual is None else block.program.manual.manual
    whole = aval.update(sharding=tidy(split, split.spec.update(unreduced=set(), reduced=set())))
    ctx = LoweringContext(block, reshard_p, [whole], [aval], {})
    return _exchanged(ctx, v, split.mesh, mapped)


def _on_device(aval: Any) -> Any:
    """The type of a value for the rule of an operation on parts."""
    return aval if getattr(aval, "split", None) is None else aval.update(sharding=None)


def _on_first(ctx: LoweringContext, v: Any, axes: Sequence[str]) -> Any:
    """A value on the first device along the axes, and zeros on the others."""
    aval = _block_type(ctx, v)
    scalar = ShapedArray((), np.dtype(np.int32))
    for name in axes:
        index = ctx.program.manual.numbers[name]
        pick = lambda x, i: lax.select_n(lax.eq(i, np.int32(0)), lax.full_like(x, 0), x)
        v = ctx.lower_fun(pick, v, index, avals=[aval, scalar])
    return v


def _block_type(ctx: LoweringContext, v: Any) -> ShapedArray:
    return ShapedArray(tuple(v.type.shape), ctx.dtype(v))


def _padded(ctx: LoweringContext, v: Any, d: int, name: str, size: int) -> Any:
    """The block of this device along an axis, in zeros."""
    n = v.type.shape[d]

    def put(x, i):
        shape = (*x.shape[:d], n * size, *x.shape[d + 1 :])
        return lax.dynamic_update_slice_in_dim(lax.full_like(x, 0, shape=shape), x, lax.mul(i, np.int32(n)), d)

    scalar = ShapedArray((), np.dtype(np.int32))
    return ctx.lower_fun(put, v, ctx.program.manual.numbers[name], avals=[_block_type(ctx, v), scalar])


def _spec(split: Any, mapped: Sequence[Any]) -> PartitionSpec:
    return _NOTHING if split is None else without_axes(split.spec, frozenset(mapped))


def _exchanged(ctx: LoweringContext, v: Any, mesh: Any, mapped: Sequence[Any]) -> Any:
    """The operand of `reshard` with the partial sums of the result; the partitioner does the rest."""
    rank = v.type.rank
    old, new = (_spec(avals[0].split, mapped) for avals in (ctx.avals_in, ctx.avals_out))
    have, want = ([axes_of(e) for e in itertools.islice((*spec, *[None] * rank), rank)] for spec in (old, new))
    done, made = old.unreduced - new.unreduced, new.unreduced - old.unreduced
    shape = ctx.avals_in[0].shape
    if done:
        v, have = _summed(ctx, v, shape, mesh, have, want, done, old.unreduced_kind)
    if made:
        v = _in_parts(ctx, v, shape, mesh, have, made)
    return v


def _part(ctx, v, shape, mesh, have, after, axes, numbered, work) -> Any:
    """A value through a part that is mapped over `axes` and over all axes that split it; ``work(ctx, block)``."""
    manual = tuple(n for n in mesh.axis_names if n in axes or any(n in e for e in have))
    dtype = ctx.dtype(v)

    def block_of(entries):
        parts = [int(np.prod([mesh.shape[n] for n in e], dtype=int)) for e in entries]
        return ctx.tensor_type(tuple(n // c for n, c in zip(shape, parts, strict=True)), dtype)

    def body(block, arguments):
        return [work(LoweringContext(block, ctx.prim, [], [], {}, ctx.location), *arguments)]

    specs = [[PartitionSpec(*entries)] for entries in (have, after)]
    (out,) = on_blocks(ctx, [v], specs[0], [block_of(have)], specs[1], [block_of(after)], mesh, manual, numbered, body)
    return out


def _summed(ctx, v, shape, mesh, have, want, done, kind) -> tuple[Any, list]:
    """The parts over the axes `done`, combined; each device gets its block of the sum where the result is split."""
    after, left, scattered = [], set(done), []
    for d, (e, w) in enumerate(zip(have, want, strict=True)):
        more: tuple[Any, ...] = ()
        if kind is UnreducedKind.sum and w[: len(e)] == e:
            more = tuple(itertools.takewhile(left.__contains__, w[len(e) :]))
        size = int(np.prod([mesh.shape[n] for n in more], dtype=int))
        if more and shape[d] % (size * int(np.prod([mesh.shape[n] for n in e], dtype=int))) == 0:
            scattered.append((d, more, size))
            left -= set(more)
        else:
            more = ()
        after.append((*e, *more))

    def work(own, x):
        for d, names, size in scattered:
            x = lowering_rules[collectives.reduce_scatter_p](
                own, x, scatter_dimension=d, axis_name=names, axis_index_groups=None, axis_size=size, tiled=True
            )
        rest = tuple(n for n in mesh.axis_names if n in left)
        return lowering_rules[_TOTAL[kind]](own, x, axes=rest, axis_index_groups=None) if rest else x

    return _part(ctx, v, shape, mesh, have, after, done, (), work), after


def _in_parts(ctx, v, shape, mesh, have, made) -> Any:
    """A value as parts over the axes `made`: the blocks along them in zeros, or the value on the first device."""
    after, padded = [], []
    for d, e in enumerate(have):
        while e and e[-1] in made:
            padded.append((d, e[-1]))
            e = e[:-1]
        after.append(e)
    inside = {n for e in after for n in e} & made
    if inside:  # blocks that are not contiguous are gathered
        after = [tuple(n for n in e if n not in made) for e in have]
        place = ctx.avals_out[0].split.update(spec=PartitionSpec(*after))
        v, have, padded = ctx.program.partitioner.constrained(ctx, v, place), after, []
    first = [n for n in mesh.axis_names if n in made and n not in [name for _, name in padded]]
    numbered = tuple(n for n in mesh.axis_names if n in made)

    def work(own, x):
        for d, name in padded:
            x = _padded(own, x, d, name, mesh.shape[name])
        return _on_first(own, x, first)

    return _part(ctx, v, shape, mesh, have, after, made, numbered, work)
