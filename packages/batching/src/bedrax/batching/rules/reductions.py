"""Batching of the reductions: the mapped axis is not reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax.batching.rules.shaping import common_dim
from bedrax.batching.tables import batch_rules, to_axis, to_front
from bedrax.core import dims as core_dims
from bedrax.core import ir
from bedrax.core.avals import aval_of
from bedrax.core.ir import Jaxpr
from bedrax.lax.axes import after_removal, shift
from bedrax.lax.primitives import reductions, shaping


def _reduction(prim):
    def rule(axis, args, dims, *, axes, **params):
        (x,), (dim,) = args, dims
        axes = shift(axes, dim)
        return prim.bind(x, axes=axes, **params), after_removal(dim, axes)

    batch_rules.add(prim, rule)


for _prim in (
    reductions.reduce_sum_p,
    reductions.reduce_prod_p,
    reductions.reduce_max_p,
    reductions.reduce_min_p,
    reductions.reduce_and_p,
    reductions.reduce_or_p,
    reductions.reduce_xor_p,
    reductions.argmax_p,
    reductions.argmin_p,
):
    _reduction(_prim)


def over_arrays(jaxpr: Jaxpr) -> Callable[..., Any]:
    """A program of scalars as a function of equally shaped arrays; returns a list of arrays of that shape."""
    if all(eqn.primitive.family in ("elementwise", "special") for eqn in jaxpr.eqns):

        def whole(*arrays):
            shape = aval_of(arrays[0]).shape
            out = ir.run(jaxpr, *arrays)
            return [x if aval_of(x).shape == shape else shaping.broadcast_in_dim(x, shape, ()) for x in out]

        return whole

    def mapped(*arrays):
        from bedrax.batching.api import vmap

        shape = aval_of(arrays[0]).shape
        run = lambda *scalars: ir.run(jaxpr, *scalars)
        flat = [shaping.reshape(x, (core_dims.size(shape),)) for x in arrays]
        return [shaping.reshape(x, shape) for x in vmap(run)(*flat)]

    return mapped


@batch_rules.rule(reductions.reduce_p)
def _reduce(axis, args, dims, *, dimensions, jaxpr):
    half = len(args) // 2
    if all(d is None for d in dims[half:]):
        dim = common_dim(dims)
        operands = [to_axis(x, d, axis.size, dim) for x, d in zip(args[:half], dims)]
        dimensions = shift(dimensions, dim)
        out = reductions.reduce_p.bind(*operands, *args[half:], dimensions=dimensions, jaxpr=jaxpr)
        return out, [after_removal(dim, dimensions)] * half
    # An initial value that differs within the batch is one more element, folded like the others.
    operands = [to_front(x, d, axis.size) for x, d in zip(args[:half], dims)]
    inits = [to_front(x, d, axis.size) for x, d in zip(args[half:], dims[half:])]
    shape = aval_of(operands[0]).shape
    kept = [i for i in range(len(shape)) if i - 1 not in dimensions]
    sizes = tuple([shape[i] for i in kept])
    columns = []
    for x, init in zip(operands, inits):
        flat = shaping.reshape(
            shaping.transpose(x, (*kept, *(d + 1 for d in dimensions))),
            (*sizes, core_dims.size([shape[d + 1] for d in dimensions])),
        )
        first = shaping.broadcast_in_dim(init, (*sizes, 1), (0,))
        columns.append(shaping.concatenate([first, flat], len(sizes)))
    combine = over_arrays(jaxpr)
    out = reductions.fold_halves(lambda a, b: combine(*a, *b), columns, len(sizes))
    return out, [0] * half
