"""StableHLO of indexing.

StableHLO's gather clamps windows into the operand, its scatter drops windows out of bounds. The other values of
`GatherScatterMode` are arithmetic on the indices around them.
"""

from __future__ import annotations

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import elementwise
from bedrax.lax.primitives import indexing as p
from bedrax.xla_backend.tables import lowering_rules


def _wide_indices(ctx, indices, aval, bounds):
    """The indices in a signed dtype that can represent every bound, and that dtype."""
    dtype = aval.dtype
    bits = dtypes.itemsize_bits(dtype)
    unsigned = dtypes.issubdtype(dtype, np.unsignedinteger)
    largest = max([b for b in bounds if isinstance(b, int)], default=0)
    if dtype == np.uint64:  # values above the range of int64 are out of bounds
        indices = ctx.binary("stablehlo.minimum", indices, ctx.full(aval.shape, np.iinfo(np.int64).max, dtype))
    if bits >= 32 and not unsigned and (bits == 64 or largest <= np.iinfo(np.int32).max):
        return indices, dtype
    small = bits + unsigned <= 32 and largest <= np.iinfo(np.int32).max
    dtype = np.dtype(np.int32 if small else np.int64)
    return ctx.convert(indices, dtype), dtype


def _limits(ctx, aval, operand_shape, index_map, sizes, dtype):
    """The largest valid start for each component, in the shape of the indices."""
    last = [operand_shape[d] - sizes[d] for d in index_map]
    axis = len(aval.shape) - 1
    if all(isinstance(n, int) for n in last):
        vector = ctx.constant(np.array(last, dtype))
    else:
        parts = [ctx.reshape(ctx.convert(ctx.dim_value(n), dtype), (1,)) for n in last]
        vector = (
            parts[0]
            if len(parts) == 1
            else ctx.emit("stablehlo.concatenate", parts, ctx.tensor_type((len(parts),), dtype), dimension=0)
        )
    return ctx.broadcast_in_dim(vector, aval.shape, (axis,))


@lowering_rules.rule(p.gather_p)
def _gather(ctx, operand, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, mode, fill_value, **_):
    n, x, i, out = dimension_numbers, ctx.avals_in[0], ctx.avals_in[1], ctx.avals_out[0]
    indices, dtype = _wide_indices(ctx, indices, i, x.shape)
    numbers = ctx.parse(
        f"#stablehlo.gather<offset_dims = {[*n.offset_dims]}, collapsed_slice_dims = {[*n.collapsed_slice_dims]},"
        f" operand_batching_dims = {[*n.operand_batching_dims]}, start_indices_batching_dims ="
        f" {[*n.start_indices_batching_dims]}, start_index_map = {[*n.start_index_map]}, index_vector_dim ="
        f" {i.ndim - 1}>"
    )
    attributes = dict(dimension_numbers=numbers, indices_are_sorted=indices_are_sorted)
    if ctx.is_static(slice_sizes):
        value = ctx.emit("stablehlo.gather", [operand, indices], slice_sizes=tuple(slice_sizes), **attributes)
    else:
        sizes = ctx.shape_tensor(slice_sizes)
        value = ctx.emit("stablehlo.dynamic_gather", [operand, indices, sizes], **attributes)
    if mode is not p.GatherScatterMode.FILL_OR_DROP or not n.start_index_map:
        return value
    inside = ctx.binary(
        "stablehlo.and",
        ctx.compare(indices, ctx.full(i.shape, 0, dtype), "GE"),
        ctx.compare(indices, _limits(ctx, i, x.shape, n.start_index_map, slice_sizes, dtype), "LE"),
    )
    inside = ctx.reduce(inside, ctx.constant(True, np.dtype(np.bool_)), (i.ndim - 1,), "stablehlo.and")
    batch = [d for d in range(out.ndim) if d not in n.offset_dims]
    inside = ctx.broadcast_in_dim(inside, out.shape, tuple(batch))
    return ctx.select(inside, value, ctx.full(out.shape, fill_value, out.dtype))


def _scatter_rule(prim, combiner):
    def rule(
        ctx,
        operand,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
        update_jaxpr=None,
        update_consts=(),
    ):
        n, (x, i, u) = dimension_numbers, ctx.avals_in
        if not n.scatter_dims_to_operand_dims:
            return ctx.lower_fun(
                _scatter_at_origin(prim),
                operand,
                indices,
                updates,
                dimension_numbers=n,
                unique_indices=unique_indices,
                indices_are_sorted=indices_are_sorted,
                mode=mode,
                update_jaxpr=update_jaxpr,
                update_consts=update_consts,
            )
        indices, dtype = _wide_indices(ctx, indices, i, x.shape)
        if mode is p.GatherScatterMode.CLIP and n.scatter_dims_to_operand_dims:
            sizes = p.window_sizes(x.ndim, u.shape, n)
            last = _limits(ctx, i, x.shape, n.scatter_dims_to_operand_dims, sizes, dtype)
            indices = ctx.binary("stablehlo.maximum", indices, ctx.full(i.shape, 0, dtype))
            indices = ctx.binary("stablehlo.minimum", indices, last)
        numbers = ctx.parse(
            f"#stablehlo.scatter<update_window_dims = {[*n.update_window_dims]}, inserted_window_dims ="
            f" {[*n.inserted_window_dims]}, input_batching_dims = {[*n.operand_batching_dims]},"
            f" scatter_indices_batching_dims = {[*n.scatter_indices_batching_dims]}, scatter_dims_to_operand_dims ="
            f" {[*n.scatter_dims_to_operand_dims]}, index_vector_dim = {i.ndim - 1}>"
        )
        scalar = ctx.tensor_type((), x.dtype)
        if update_jaxpr is not None:
            region = ctx.jaxpr_region(update_jaxpr)
        elif combiner is None:
            region = ctx.region([scalar, scalar], lambda old, new: new)
        else:
            region = ctx.region([scalar, scalar], lambda old, new: combiner(ctx, old, new))
        return ctx.emit(
            "stablehlo.scatter",
            [operand, indices, updates],
            scatter_dimension_numbers=numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            regions=[region],
        )

    lowering_rules.add(prim, rule)


def _scatter_at_origin(prim):
    """Rule for a scatter with empty index vectors. XLA treats it as one without updates and drops it. So the operand
    gets one more dimension, of size 1, with indices of 0."""

    def fun(operand, indices, updates, *, dimension_numbers, **params):
        n = dimension_numbers
        up = lambda ds: tuple([d + 1 for d in ds])
        numbers = n._replace(
            inserted_window_dims=(0, *up(n.inserted_window_dims)),
            scatter_dims_to_operand_dims=(0,),
            operand_batching_dims=up(n.operand_batching_dims),
        )
        zeros = lax.full((*aval_of(indices).shape[:-1], 1), 0, np.int32)
        out = prim.bind(lax.expand_dims(operand, (0,)), zeros, updates, dimension_numbers=numbers, **params)
        return lax.squeeze(out, (0,))

    return fun


def _op(name: str):
    return lambda ctx, old, new: ctx.binary(name, old, new)


def _lax_order(prim, op: str):
    """Minimum or maximum by the elementwise primitive, which also orders complex numbers."""

    def combine(ctx, old, new):
        if ctx.avals_in[0].dtype not in dtypes.complex_dtypes:
            return ctx.binary(op, old, new)
        scalar = ctx.avals_in[0].update(shape=())
        return ctx.lower_fun(prim.bind, old, new, avals=[scalar, scalar])

    return combine


for _prim, _combiner in (
    (p.scatter_p, None),
    (p.scatter_add_p, _op("stablehlo.add")),
    (p.scatter_sub_p, _op("stablehlo.subtract")),
    (p.scatter_mul_p, _op("stablehlo.multiply")),
    (p.scatter_min_p, _lax_order(elementwise.min_p, "stablehlo.minimum")),
    (p.scatter_max_p, _lax_order(elementwise.max_p, "stablehlo.maximum")),
):
    _scatter_rule(_prim, _combiner)


def _start_operands(ctx, starts, avals, shape):
    return [_wide_indices(ctx, s, aval, shape)[0] for s, aval in zip(starts, avals, strict=True)]


@lowering_rules.rule(p.dynamic_slice_p)
def _dynamic_slice(ctx, operand, *starts, slice_sizes):
    x = ctx.avals_in[0]
    starts = _start_operands(ctx, starts, ctx.avals_in[1:], x.shape)
    if not starts:
        return operand
    if ctx.is_static(slice_sizes):
        return ctx.emit("stablehlo.dynamic_slice", [operand, *starts], slice_sizes=tuple(slice_sizes))
    dtype = ctx.dtype(starts[0])  # a wide start is clamped as it is
    begin = ctx.emit(
        "stablehlo.concatenate",
        [ctx.reshape(s, (1,)) for s in starts],
        ctx.tensor_type((len(starts),), dtype),
        dimension=0,
    )
    return ctx.window(operand, begin, slice_sizes)


@lowering_rules.rule(p.dynamic_update_slice_p)
def _dynamic_update_slice(ctx, operand, update, *starts):
    if not starts:
        return update
    starts = _start_operands(ctx, starts, ctx.avals_in[2:], ctx.avals_in[0].shape)
    return ctx.emit("stablehlo.dynamic_update_slice", [operand, update, *starts])
