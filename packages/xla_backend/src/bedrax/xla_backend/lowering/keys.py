"""Operations on arrays of keys (extended dtypes).

An array of keys is represented by an array with further trailing axes, those of one element. An operation
that moves elements around without looking into them (reshape, select, gather, ...) does to keys what its batching
rule does to the elements' numbers when the trailing axes are mapped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core.avals import ShapedArray, aval_of
from bedrax.xla_backend.lowering import types


def lower_elementwise_of_keys(ctx, operands: list) -> Any:
    """Lower `ctx.prim`, some of whose operands or results are keys, through its batching rule."""
    from bedrax.batching.tables import batch_rules
    from bedrax.batching.trace import AxisData
    from bedrax.core import lax

    prim, params = ctx.prim, ctx.params
    element = next(
        a.dtype for a in (*ctx.avals_in, *ctx.avals_out) if a.is_array and not isinstance(a.dtype, np.dtype)
    )
    sizes = tuple(element.element_shape)
    if len(sizes) != 1:
        raise NotImplementedError(
            f"'{prim}' of keys whose elements have shape {sizes}: only elements of rank 1 are supported"
        )
    rule = batch_rules[prim]
    is_key = [a.is_array and not isinstance(a.dtype, np.dtype) for a in ctx.avals_in]
    physical = [ShapedArray(*types.physical(a), a.weak_type) if a.is_array else a for a in ctx.avals_in]

    def mapped(*args):
        marks = [len(a.shape) - 1 if k else None for a, k in zip(physical, is_key)]
        out, dims = rule(AxisData(None, sizes[0], None), list(args), marks, **params)
        if not prim.multiple_results:
            out, dims = [out], [dims]
        return [_last(lax, x, d) for x, d in zip(out, dims)]

    out = ctx.lower_fun(mapped, *operands, avals=physical)
    return out if prim.multiple_results else out[0]


def _last(lax, x, dim):
    if dim is None:
        return x
    rank = len(aval_of(x).shape)
    order = [i for i in range(rank) if i != dim] + [dim]
    return lax.transpose(x, order)
