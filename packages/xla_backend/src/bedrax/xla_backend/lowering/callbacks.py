"""StableHLO of callbacks: custom calls into the host's Python."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from bedrax.core import effects
from bedrax.core.tracing import Primitive
from bedrax.lax import all_gather, full, index_in_dim
from bedrax.lax.primitives.callbacks import debug_callback_p, io_callback_p, ordered_io_effect, pure_callback_p
from bedrax.lax.primitives.collectives import axis_index
from bedrax.lax.primitives.control_flow import cond
from bedrax.parallel.mapping import shard_map
from bedrax.parallel.specs import PartitionSpec
from bedrax.xla_backend.tables import lowering_rules


def _left(ctx) -> tuple[str, ...]:
    """The mesh axes that the partitioner manages here, if other axes are manual."""
    return () if ctx.program.manual is None else ctx.program.manual.free


def _mapped(ctx, function: Callable, args: Any, out_specs: Any) -> Any:
    """`function` on the whole block, on each of the devices over which the partitioner may split it."""
    mesh, axes = ctx.program.manual.mesh, {*_left(ctx)}
    whole = dict(mesh=mesh, in_specs=PartitionSpec(), out_specs=out_specs, axis_names=axes, check_vma=False)
    return ctx.lower_fun(lambda *args: shard_map(function, **whole)(*args), *args)


@lowering_rules.rule(pure_callback_p)
def _pure(ctx, *args, callback, result_avals, device, **params):
    if _left(ctx) and device is None:
        params |= dict(callback=callback, result_avals=result_avals, device=None)
        again = functools.partial(pure_callback_p.bind, **params)
        return _mapped(ctx, again, args, PartitionSpec())
    return ctx.host_callback(callback, args, result_avals, has_side_effect=False, device=device)


def _once(ctx, prim: Primitive, args: Any, types: Sequence[Any], params: dict) -> Any:
    """Call once per block: the first device that holds the block calls, and the other devices receive the results."""
    left = _left(ctx)

    def first_calls(*args):
        first = functools.reduce(operator.and_, [axis_index(n) == 0 for n in left])
        call = functools.partial(prim.bind, *args, **params)
        out = cond(first, lambda: list(call()), lambda: [full(t.shape, 0, t.dtype) for t in types])
        return [index_in_dim(all_gather(x, left), 0, keepdims=False) for x in out]

    return _mapped(ctx, first_calls, args, [PartitionSpec()] * len(types))


@lowering_rules.rule(io_callback_p)
def _io(ctx, *args, callback, result_avals, ordered, device):
    if _left(ctx) and not ordered and device is None:
        params = dict(callback=callback, result_avals=result_avals, ordered=False, device=None)
        return _once(ctx, io_callback_p, args, result_avals, params)
    return ctx.host_callback(callback, args, result_avals, ordered_io_effect if ordered else None, device=device)


@lowering_rules.rule(debug_callback_p)
def _debug(ctx, *args, callback, effect, partitioned):
    ordered = effect in effects.ordered_effects
    if not _left(ctx) or ordered or partitioned:
        return ctx.host_callback(callback, args, [], effect if ordered else None)
    return _once(ctx, debug_callback_p, args, [], dict(callback=callback, effect=effect, partitioned=False))
