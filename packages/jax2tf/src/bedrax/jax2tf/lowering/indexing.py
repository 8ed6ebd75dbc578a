"""TensorFlow for indexing: windows become indices of rows of a flattened operand.

The indexed dimensions are moved to the front and flattened; a window is a set of rows there. So every
mode and every layout is one gather or one scatter of rows, at computed indices.
"""

from __future__ import annotations

import math
from typing import Any

from bedrax.core import dims
from bedrax.core.typing import ArrayLike, Shape
from bedrax.jax2tf.carriers import accumulator, carrier, cast, in_carrier, moved
from bedrax.jax2tf.lowering.reductions import combine_arrays
from bedrax.jax2tf.lowering.shaping import reshape
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import scalar, transpose, vector
from bedrax.lax.primitives import indexing as p
from bedrax.shape_poly import symbolic_dim_bounds
from bedrax.tf import tensorflow as tf


def _index_type(indices, shape):
    """Indices as int32 if the rows are few enough, else int64. Larger indices are out of bounds in any case."""
    if indices.dtype == tf.uint64:
        indices = tf.minimum(indices, tf.constant(2**63 - 1, tf.uint64))
    big = indices.dtype in (tf.int64, tf.uint64, tf.uint32)
    if not big and dims.is_constant_shape(shape):
        big = math.prod(shape) >= 2**31
    return cast(indices, tf.int64 if big else tf.int32)


class _Rows:
    """The rows of the flattened operand for the windows.

    Attributes:
      part, whole: the indexed dimensions of the operand, and those that a window covers completely.
      index: indices of rows, of shape ``(*batch, *window sizes of part)``.
      inside: a boolean per window (of shape batch): whether it is inside; None if windows are clamped.
    """

    def __init__(
        self,
        ctx: Any,
        indices: Any,
        operand_shape: Any,
        indices_shape: Any,
        numbers: Any,
        sizes: Any,
        clip: bool,
        promised: bool = False,
    ) -> None:
        rank, batch = len(operand_shape), indices_shape[:-1]
        touched = {*numbers.start_index_map, *numbers.operand_batching_dims}
        full = lambda d: dims.definitely_equal(sizes[d], operand_shape[d])
        self.whole = [d for d in range(rank) if d not in touched and full(d)]
        self.part = [d for d in range(rank) if d not in self.whole]
        indices = _index_type(indices, operand_shape)
        word = indices.dtype
        number = lambda n: tf.cast(ctx.dim(n), word)
        starts: dict[Any, Any] = {}
        self.inside = None
        for k, d in enumerate(numbers.start_index_map):
            start, last = indices[..., k], number(operand_shape[d] - sizes[d])
            if promised:
                starts[d] = start
                continue
            clipped = tf.clip_by_value(start, tf.zeros([], word), last)
            if not clip:
                here = tf.equal(start, clipped)
                self.inside = here if self.inside is None else tf.logical_and(self.inside, here)
            starts[d] = clipped
        for d, i in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            line = tf.range(number(batch[i]))
            starts[d] = tf.reshape(line, [-1 if j == i else 1 for j in range(len(batch))])
        n = len(self.part)
        index = tf.zeros([1] * (len(batch) + n), word)
        stride = 1
        for i in range(n - 1, -1, -1):
            d = self.part[i]
            where = starts[d][(...,) + (None,) * n] if d in starts else None
            if not dims.definitely_equal(sizes[d], 1):
                offsets = tf.reshape(tf.range(number(sizes[d])), [-1 if j == i else 1 for j in range(n)])
                where = offsets if where is None else where + offsets
            if where is not None:
                index = index + where * tf.cast(ctx.dim(stride), word)
            stride = stride * operand_shape[d]
        self.count = stride
        self.shape = [*batch, *[sizes[d] for d in self.part]]
        if dims.is_constant_shape(self.shape) and index.shape.is_fully_defined() and index.shape == self.shape:
            self.index = index
        else:
            self.index = tf.broadcast_to(index, ctx.shape(self.shape))

    def rows(self, ctx: Any, operand: ArrayLike, shape: Shape) -> Any:
        """The operand as rows."""
        return reshape(
            ctx, transpose(operand, [*self.part, *self.whole]), [self.count, *[shape[d] for d in self.whole]]
        )


@tf_rules.rule(p.gather_p)
@moved
def _gather(ctx, operand, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    numbers = dimension_numbers
    shape, indices_shape = ctx.avals_in[0].shape, ctx.avals_in[1].shape
    batch, out_shape = indices_shape[:-1], ctx.aval_out.shape
    if any(dims.is_constant_dim(d) and d == 0 for d in out_shape):
        return tf.zeros(ctx.shape(out_shape), operand.dtype)
    fill = mode is p.GatherScatterMode.FILL_OR_DROP
    rows = _Rows(ctx, indices, shape, indices_shape, numbers, slice_sizes, clip=not fill)
    out = tf.gather(rows.rows(ctx, operand, shape), rows.index)
    # From (batch, indexed, whole) to batch, then the window in the operand's order, without the dropped dimensions.
    b = len(batch)
    position = {d: b + i for i, d in enumerate([*rows.part, *rows.whole])}
    out = transpose(out, [*range(b), *[position[d] for d in range(len(shape))]])
    lacking = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    if lacking:
        out = reshape(ctx, out, [*batch, *[s for d, s in enumerate(slice_sizes) if d not in lacking]])
    if fill and rows.inside is not None:
        inside = rows.inside[(...,) + (None,) * (out.shape.rank - b)]
        out = tf.where(inside, out, scalar(fill_value, out))
    batch_at, offset_at = iter(range(b)), iter(range(b, len(out_shape)))
    return transpose(
        out, [next(offset_at) if d in numbers.offset_dims else next(batch_at) for d in range(len(out_shape))]
    )


def _scatter_rule(prim, update, target=None):
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
        shape, indices_shape, updates_shape = (a.shape for a in ctx.avals_in[:3])
        if any(dims.is_constant_dim(d) and d == 0 for d in (*updates_shape, *shape)):
            return operand
        numbers = p.as_gather(dimension_numbers)
        sizes = p.window_sizes(len(shape), updates_shape, dimension_numbers)
        clip, promised = mode is p.GatherScatterMode.CLIP, mode is p.GatherScatterMode.PROMISE_IN_BOUNDS
        rows = _Rows(ctx, indices, shape, indices_shape, numbers, sizes, clip, promised)
        table = rows.rows(ctx, operand, shape)
        index, count = rows.index, rows.count
        dropping = rows.inside is not None
        if dropping:
            # Indices out of bounds select an additional row.
            table = tf.concat([table, tf.zeros_like(table[:1])], 0)
            inside = rows.inside[(...,) + (None,) * len(rows.part)]
            index = tf.where(inside, index, tf.cast(ctx.dim(count), index.dtype))
        # Updates in the order of the rows: the windows' positions first, then the indexed dimensions.
        window = dimension_numbers.update_window_dims
        rest = [d for d in range(len(updates_shape)) if d not in window]
        values = transpose(updates, [*rest, *window])
        values = reshape(ctx, values, [*indices_shape[:-1], *sizes])
        b = len(rest)
        values = transpose(values, [*range(b), *[b + d for d in (*rows.part, *rows.whole)]])
        flat = dims.size(rows.shape)
        values = reshape(ctx, values, [flat, *[shape[d] for d in rows.whole]])
        index = reshape(ctx, index, [flat])
        if update_jaxpr is not None:
            out = _apply(ctx, table, index, values, update_jaxpr)
        else:
            out = update(ctx, table, index, values)
        if dropping:
            out = out[:-1]
        order = [*rows.part, *rows.whole]
        out = reshape(ctx, out, [shape[d] for d in order])
        return transpose(out, [order.index(d) for d in range(len(order))])

    tf_rules.add(prim, in_carrier(rule, target) if target else moved(rule))


def _apply(ctx, table, index, values, jaxpr):
    """``table[i] = jaxpr(table[i], value)`` for one row after the other, because an index may occur several times."""
    combine = combine_arrays(ctx, jaxpr)

    def step(i, table):
        row = index[i]
        (new,) = combine(table[row], values[i])
        return i + 1, tf.tensor_scatter_nd_update(table, [[row]], new[None])

    n = tf.shape(index)[0]
    return tf.while_loop(lambda i, _: i < n, step, [tf.constant(0), table])[1]


def _product(ctx, table, index, values):
    return table * tf.math.unsorted_segment_prod(values, index, tf.shape(table)[0])


def _extremes(largest: bool):
    def update(ctx, table, index, values):
        if table.dtype == tf.bool:
            table, values = tf.cast(table, tf.int32), tf.cast(values, tf.int32)
            return tf.cast(update(ctx, table, index, values), tf.bool)
        function = tf.tensor_scatter_nd_max if largest else tf.tensor_scatter_nd_min
        if table.dtype.is_complex:
            raise NotImplementedError(
                "scatter_max and scatter_min of complex numbers: TensorFlow has no kernel that orders them; scatter the real parts"
            )
        out = function(table, index[:, None], values)
        if not table.dtype.is_floating:
            return out
        # The kernel ignores nan.
        bad = lambda x: tf.cast(tf.not_equal(x, x), tf.int32)
        nan = tf.tensor_scatter_nd_max(bad(table), index[:, None], bad(values))
        return tf.where(nan > 0, scalar(float("nan"), out), out)

    return update


def _update(ctx, table, index, values):
    return tf.tensor_scatter_nd_update(table, index[:, None], values)


def _sum(ctx, table, index, values):
    if ctx.enable_xla or not table.dtype.is_floating:
        return tf.tensor_scatter_nd_add(table, index[:, None], values)
    # TFLite's converter would make the same; TF.js has only this operation.
    return table + tf.scatter_nd(index[:, None], values, tf.shape(table))


def _difference(ctx, table, index, values):
    if values.dtype.is_unsigned:
        return tf.tensor_scatter_nd_sub(table, index[:, None], values)
    return _sum(ctx, table, index, -values)  # TFLite has this operation


_scatter_rule(p.scatter_p, _update)
_scatter_rule(p.scatter_add_p, _sum, carrier)
_scatter_rule(p.scatter_sub_p, _difference, carrier)
_scatter_rule(p.scatter_mul_p, _product, accumulator)
_scatter_rule(p.scatter_min_p, _extremes(False), carrier)
_scatter_rule(p.scatter_max_p, _extremes(True), carrier)


# ---- slices at dynamic positions -----------------------------------------------------------------


def _clamped(ctx, starts, shape, sizes):
    """Starts of a slice, clamped, as a vector."""
    out = []
    for start, n, size in zip(starts, shape, sizes, strict=True):
        start = _index_type(start, ())
        last = tf.cast(ctx.dim(n - size), start.dtype)
        clipped = tf.clip_by_value(start, tf.zeros([], start.dtype), last)
        out.append(tf.cast(clipped, tf.int32) if dims.is_constant_dim(n) and n < 2**31 else clipped)
    if len({x.dtype for x in out}) > 1:
        out = [tf.cast(x, tf.int64) for x in out]
    return out


@tf_rules.rule(p.dynamic_slice_p)
@moved
def _dynamic_slice(ctx, operand, *starts, slice_sizes):
    starts = starts[: len(slice_sizes)]
    if not slice_sizes:
        return operand
    begin = tf.stack(_clamped(ctx, starts, ctx.avals_in[0].shape, slice_sizes))
    return tf.slice(operand, begin, tf.cast(vector([ctx.dim(s) for s in slice_sizes]), begin.dtype))


@tf_rules.rule(p.dynamic_update_slice_p)
@moved
def _dynamic_update_slice(ctx, operand, update, *starts):
    shape, sizes = ctx.avals_in[0].shape, ctx.avals_in[1].shape
    if not sizes:
        return update
    if any(dims.is_constant_dim(d) and d == 0 for d in sizes):
        return operand
    # Each position along an axis is from the operand or from the update: no shape depends on values, which XLA
    # requires.
    inside = None
    for d, (n, size, begin) in enumerate(zip(shape, sizes, _clamped(ctx, starts, shape, sizes), strict=True)):
        if dims.definitely_equal(n, size):
            continue
        place = tf.range(tf.cast(ctx.dim(n), begin.dtype)) - begin
        last = tf.cast(ctx.dim(size), begin.dtype) - 1
        here = tf.logical_and(place >= 0, place <= last)
        here = here[(slice(None), *[None] * (len(shape) - 1 - d))]
        inside = here if inside is None else tf.logical_and(inside, here)
        if not dims.definitely_equal(size, 1):
            if symbolic_dim_bounds(size)[0] < 1:  # an update without elements: the position to read must exist
                update = tf.pad(update, [[0, int(axis == d)] for axis in range(len(shape))])
            update = tf.gather(update, tf.clip_by_value(place, tf.zeros([], place.dtype), last), axis=d)
    return update if inside is None else tf.where(inside, update, operand)
