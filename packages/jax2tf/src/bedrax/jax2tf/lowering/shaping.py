"""TensorFlow for the shaping primitives. Symbolic sizes become tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dims
from bedrax.core.typing import ArrayLike, Shape
from bedrax.jax2tf.carriers import cast, moved
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import transpose, vector
from bedrax.lax.primitives import shaping as p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


def _same_shape(ctx, x, shape) -> bool:
    return dims.is_constant_shape(shape) and x.shape.is_fully_defined() and x.shape.as_list() == list(shape)


def reshape(ctx: Any, x: ArrayLike, shape: Shape) -> Any:
    """`tf.reshape`; TensorFlow infers one symbolic dimension."""
    if _same_shape(ctx, x, shape):
        return x
    symbolic = [d for d in shape if not dims.is_constant_dim(d)]
    if len(symbolic) == 1 and 0 not in [d for d in shape if dims.is_constant_dim(d)]:
        return tf.reshape(x, ctx.integers([int(d) if dims.is_constant_dim(d) else -1 for d in shape]))
    return tf.reshape(x, ctx.shape(shape))


def _one_more(operand, shape) -> int | None:
    """The axis of size one that `shape` has in addition to `operand`; None if the difference is another one."""
    if len(shape) != len(operand) + 1:
        return None
    for axis, d in enumerate(shape):
        if dims.is_constant_dim(d) and d == 1:
            fits = dims.definitely_equal_shape([*operand[:axis], 1, *operand[axis:]], shape)
            if fits:
                return axis
    return None


@tf_rules.rule(p.broadcast_in_dim_p)
@moved
def _broadcast_in_dim(ctx, x, *dynamic, shape, broadcast_dimensions):
    operand, rank = ctx.avals_in[0].shape, len(shape)
    leading = tuple(broadcast_dimensions) == tuple(range(rank - len(operand), rank))
    if not leading:
        place = [1] * rank
        for size, axis in zip(operand, broadcast_dimensions, strict=True):
            place[axis] = size
        axis = _one_more(operand, place)
        x = reshape(ctx, x, place) if axis is None else tf.expand_dims(x, axis)
        operand = place
    if ctx.implicit_broadcast or dims.definitely_equal_shape(operand, shape):
        return x
    if leading and dims.definitely_equal_shape([1] * (rank - len(operand)) + list(operand), shape):
        return reshape(ctx, x, shape)
    return tf.broadcast_to(x, ctx.shape(shape))


@tf_rules.rule(p.reshape_p)
@moved
def _reshape(ctx, x, *dynamic, new_sizes, dimensions):
    axis = _one_more(ctx.avals_in[0].shape, new_sizes) if dimensions is None else None
    if axis is not None:
        return tf.expand_dims(x, axis)
    return reshape(ctx, x if dimensions is None else transpose(x, dimensions), new_sizes)


@tf_rules.rule(p.transpose_p)
@moved
def _transpose(ctx, x, *, permutation):
    return transpose(x, permutation)


@tf_rules.rule(p.squeeze_p)
@moved
def _squeeze(ctx, x, *, dimensions):
    return tf.squeeze(x, list(dimensions)) if dimensions else x


@tf_rules.rule(p.rev_p)
@moved
def _rev(ctx, x, *, dimensions):
    return tf.reverse(x, list(dimensions)) if dimensions else x


@tf_rules.rule(p.slice_p)
@moved
def _slice(ctx, x, *, start_indices, limit_indices, strides=None):
    if strides is None or all(s == 1 for s in strides):
        sizes = [limit - start for start, limit in zip(start_indices, limit_indices, strict=True)]
        return tf.slice(x, ctx.shape(start_indices), ctx.shape(sizes))
    return tf.strided_slice(x, ctx.shape(start_indices), ctx.shape(limit_indices), ctx.shape(strides))


# ---- padding -------------------------------------------------------------------------------------


def spread(x: ArrayLike, axis: int, inner: int, fill: Any) -> Any:
    """Insert `inner` elements of value `fill` after every element along an axis, except the last one."""
    n = x.shape[axis]
    if n is None:
        n = tf.shape(x)[axis]
    pads = [[0, 0] for _ in range(x.shape.rank + 1)]
    pads[axis + 1] = [0, inner]
    padded = tf.pad(tf.expand_dims(x, axis + 1), pads, constant_values=fill)
    sizes = [s if s is not None else tf.shape(x)[d] for d, s in enumerate(x.shape.as_list())]
    whole = n * (inner + 1)
    padded = tf.reshape(padded, vector([*sizes[:axis], whole, *sizes[axis + 1 :]]))
    return padded[(slice(None),) * axis + (slice(0, _positive(whole - inner)),)]


def _positive(n):
    return max(n, 0) if isinstance(n, int) else tf.maximum(n, 0)


def pad(ctx: Any, x: ArrayLike, fill: Any, config: Any) -> Any:
    """`lax.pad` with a padding ``(low, high, interior)`` per axis; the entries are dimensions."""
    for axis, (_, _, inner) in enumerate(config):
        if not (dims.is_constant_dim(inner) and inner == 0):
            x = spread(x, axis, ctx.dim(inner), fill)
    lows, highs = [ctx.dim(c[0]) for c in config], [ctx.dim(c[1]) for c in config]
    plain = [isinstance(n, int) for n in (*lows, *highs)]
    if not all(plain) or any(n < 0 for n in (*lows, *highs)):
        cut, grow = _cut_and_grow(lows, highs)
        # Padding first: more may be cut than the operand has, if there is padding on the other side.
        x = tf.pad(x, grow, constant_values=fill) if _some(grow) else x
        starts = [a for a, _ in cut]
        sizes = tf.shape(x) - tf.stack([a + b for a, b in cut])
        return tf.slice(x, vector(starts), tf.maximum(sizes, 0)) if _some(cut) else x
    if not any(lows) and not any(highs):
        return x
    return tf.pad(x, list(zip(lows, highs, strict=True)), constant_values=fill)


def _some(pairs) -> bool:
    return any(not isinstance(n, int) or n for pair in pairs for n in pair)


def _cut_and_grow(lows, highs):
    cut = [(_positive(-low), _positive(-high)) for low, high in zip(lows, highs, strict=True)]
    grow = [(_positive(low), _positive(high)) for low, high in zip(lows, highs, strict=True)]
    return cut, grow


@tf_rules.rule(p.pad_p)
@moved
def _pad(ctx, x, padding_value, *, padding_config):
    return pad(ctx, x, padding_value, padding_config)


# ---- joining and splitting -----------------------------------------------------------------------


@tf_rules.rule(p.concatenate_p)
@moved
def _concatenate(ctx, *xs, dimension):
    return tf.concat(xs, dimension) if len(xs) > 1 else xs[0]


@tf_rules.rule(p.stack_p)
@moved
def _stack(ctx, *xs, axis):
    return tf.stack(xs, axis)


@tf_rules.rule(p.unstack_p)
@moved
def _unstack(ctx, x, *, axis):
    return tf.unstack(x, num=len(ctx.avals_out), axis=axis)


@tf_rules.rule(p.split_p)
@moved
def _split(ctx, x, *, sizes, axis):
    if len(sizes) == 1:
        return [x]
    return list(tf.split(x, ctx.shape(sizes), axis))


@tf_rules.rule(p.tile_p)
@moved
def _tile(ctx, x, *, reps):
    if x.dtype == tf.uint16:  # tile has no kernel for it
        return tf.cast(tf.tile(tf.cast(x, tf.int32), ctx.shape(reps)), x.dtype)
    return tf.tile(x, ctx.shape(reps))


@tf_rules.rule(p.iota_p)
def _iota(ctx, *dynamic, dtype, shape, dimension):
    n = ctx.dim(shape[dimension])
    if isinstance(n, int):
        line = types.constant(np.arange(n).astype(dtype))
    else:
        line = cast(tf.range(n), types.tf_dtype(dtype))
    place = [1] * len(shape)
    place[dimension] = shape[dimension]
    return moved(lambda ctx, x: tf.broadcast_to(reshape(ctx, x, place), ctx.shape(shape)))(ctx, line)


@tf_rules.rule(p.empty_p)
def _empty(ctx, *, shape, dtype):
    zero = types.constant(np.zeros((), dtype))
    return moved(lambda ctx, x: tf.broadcast_to(x, ctx.shape(shape)))(ctx, zero)
