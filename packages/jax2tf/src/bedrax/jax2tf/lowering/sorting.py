"""TensorFlow for sorting: stable sorts of integers in the order of the elements, and one gather per operand."""

from __future__ import annotations

from bedrax.jax2tf.carriers import carrier, cast, moved
from bedrax.jax2tf.lowering.elementwise import total_order_key
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import move
from bedrax.lax.primitives import sorting as p
from bedrax.lax.primitives.shaping import canonical_axis
from bedrax.tf import tensorflow as tf


def _keys(x) -> list:
    """Integers to compare one after the other: nan is last for either sign, and -0 equals 0."""
    if x.dtype.is_complex:
        return [*_keys(tf.math.real(x)), *_keys(tf.math.imag(x))]
    if x.dtype == tf.bool:
        return [tf.cast(x, tf.int32)]
    x = cast(x, carrier(x.dtype))
    if x.dtype == tf.uint16:  # TensorFlow's XLA does not sort it
        return [tf.cast(x, tf.int32)]
    return [_same_zeros_and_nans(x) if x.dtype.is_floating else x]


def _same_zeros_and_nans(x):
    """The keys of a total order of floats with one zero and one nan, which is last.

    Only the bits are used: TensorFlow's comparisons of floats may treat subnormal numbers as zeros.
    """
    key = _total_order(x)
    word = key.dtype
    infinity = _total_order(tf.constant(float("inf"), x.dtype))
    # The key of -0 is -1. (A constant -0.0 would not do: TensorFlow keeps constants by value, where it equals 0.0.)
    key = tf.where(tf.equal(key, tf.constant(-1, word)), tf.zeros([], word), key)
    nan = tf.logical_or(key > infinity, key < -infinity - 1)
    return tf.where(nan, tf.constant(word.max, word), key)


def _total_order(x):
    key = total_order_key(x)
    return tf.cast(key, tf.int32) if key.dtype.size < 4 else key


def _axis(x, source: int, destination: int):
    return moved(lambda ctx, x: move(x, source, destination))(None, x)


def _take(x, order):
    """``x[..., order]``: the last axis of `order` indexes that of `x`, and the others are the same."""
    return moved(lambda ctx, x: tf.gather(x, order, axis=-1, batch_dims=x.shape.rank - 1))(None, x)


@tf_rules.rule(p.sort_p)
def _sort(ctx, *operands, dimension, is_stable, num_keys):
    last = ctx.avals_in[0].ndim - 1
    xs = [_axis(x, dimension, last) for x in operands]
    order = None
    # The least significant key first: each stable sort keeps the order of those before it.
    for key in [key for x in xs[:num_keys] for key in _keys(x)][::-1]:
        now = tf.argsort(key if order is None else _take(key, order), axis=-1, stable=True)
        order = now if order is None else _take(order, now)
    return [_axis(_take(x, order), last, dimension) for x in xs]


def _largest(ctx, x, k, axis: int, largest: bool = True) -> list:
    last = ctx.avals_in[0].ndim - 1
    x = _axis(x, axis, last)
    key = _total_order(cast(x, carrier(x.dtype)))
    if not largest:
        key = tf.bitwise.invert(key)
    _, index = tf.math.top_k(key, ctx.dim(k))  # of equal elements the first comes first
    return [_axis(_take(x, index), last, axis), move(index, last, axis)]


tf_rules.add(p.top_k_p, lambda ctx, x, *, k, axis, is_stable=True: _largest(ctx, x, k, axis))


@tf_rules.rule(p.approx_top_k_p)
def _approx_top_k(
    ctx, x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override, aggregate_to_topk
):
    aval = ctx.avals_in[0]
    axis = canonical_axis(reduction_dimension, aval.ndim)
    size = p.approx_output_size(
        aval.shape[axis], aval.ndim, k, recall_target, reduction_input_size_override, aggregate_to_topk
    )
    return _largest(ctx, x, size, axis, is_max_k)
