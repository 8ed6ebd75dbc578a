"""TensorFlow for random bits: the generators by integer arithmetic, so that every runtime draws the same bits."""

from __future__ import annotations

from bedrax.core import dims
from bedrax.jax2tf.lowering.shaping import reshape
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import random_bits as p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


def _rotate_left(x, r: int):
    return tf.bitwise.bitwise_or(
        tf.bitwise.left_shift(x, tf.constant(r, tf.uint32)), tf.bitwise.right_shift(x, tf.constant(32 - r, tf.uint32))
    )


def threefry(key1, key2, x1, x2):
    """The hash of uint32 tensors."""
    word = lambda v: tf.constant(v, tf.uint32)
    return p.threefry_hash((key1, key2), x1, x2, tf.add, tf.bitwise.bitwise_xor, _rotate_left, word)


# Philox-4x32 with 10 rounds: multipliers, and what is added to the key between rounds.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def _u64(value):
    return tf.constant(value, tf.uint64)


def _low(x):
    return tf.bitwise.bitwise_and(x, _u64(0xFFFFFFFF))


def _high(x):
    return tf.bitwise.right_shift(x, _u64(32))


def philox(counter, key):
    """Four words (uint64 tensors below 2**32) from a counter of four words and a key of two."""
    xor = tf.bitwise.bitwise_xor
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * _u64(_MULTIPLIERS[0]), c2 * _u64(_MULTIPLIERS[1])
        c0, c1, c2, c3 = xor(xor(_high(p1), c1), k0), _low(p1), xor(xor(_high(p0), c3), k1), _low(p0)
        k0, k1 = _low(k0 + _u64(_WEYL[0])), _low(k1 + _u64(_WEYL[1]))
    return c0, c1, c2, c3


def _join(low, high):
    low, high = tf.cast(low, tf.uint64), tf.cast(high, tf.uint64)
    return tf.bitwise.bitwise_or(low, tf.bitwise.left_shift(high, _u64(32)))


def _count(ctx, n):
    """The counters 0, 1, ... as uint64."""
    return tf.cast(tf.range(tf.cast(ctx.dim(n), tf.int64)), tf.uint64)


@tf_rules.rule(p.rng_bit_generator_p)
def _bit_generator(ctx, key, *, shape, dtype, algorithm):
    # The state: 64 bits of key, and a 64-bit counter of blocks.
    narrow = key.dtype == tf.uint32
    secret, start = (_join(key[0], key[1]), _join(key[2], key[3])) if narrow else (key[0], key[1])
    wide = dtype.itemsize == 8
    draw = _draw_threefry if algorithm == p.RandomAlgorithm.RNG_THREE_FRY else _draw_philox
    bits, blocks = draw(ctx, secret, start, shape, wide)
    start = start + tf.cast(ctx.dim(blocks), tf.uint64)
    state = [_low(secret), _high(secret), _low(start), _high(start)] if narrow else [secret, start]
    return [tf.cast(tf.stack(state), key.dtype), tf.cast(bits, types.tf_dtype(dtype))]


def _draw_threefry(ctx, secret, start, shape, wide):
    """Two words a block. The words of a block are neighbours along one axis: the first of even length, or the longest."""
    half, axis = list(shape), 0
    if shape and not wide:
        known = [n if dims.is_constant_dim(n) else 1 for n in shape]
        if not dims.is_constant_shape(shape) and not any(n % 2 == 0 for n in known):
            raise NotImplementedError(
                f"random bits of shape {tuple(shape)} from RNG_THREE_FRY: how its words are laid out depends on which sizes"
                " are even, which a symbolic shape does not say; use RNG_PHILOX, or a constant even dimension in front"
            )
        even = [i for i, n in enumerate(shape) if dims.definitely_equal(n % 2, 0)]
        axis = even[0] if even else max(range(len(shape)), key=lambda i: (known[i], -i))
        half[axis] = -(-half[axis] // 2)
    blocks = dims.size(half)
    counter = reshape(ctx, start + _count(ctx, blocks), half)
    words = (_low(secret), _high(secret), _low(counter), _high(counter))
    x0, x1 = threefry(*(tf.cast(v, tf.uint32) for v in words))
    if wide:
        return _join(x0, x1), blocks
    if not shape:
        return x0, blocks
    both = tf.stack([x0, x1], axis + 1)
    both = reshape(ctx, both, [*half[:axis], 2 * half[axis], *half[axis + 1 :]])
    return both[(slice(None),) * axis + (slice(0, ctx.dim(shape[axis])),)], blocks


def _draw_philox(ctx, secret, start, shape, wide):
    """Four words a block, in order. The counter has 128 bits: the state, and above it the key."""
    words = dims.size(shape) * (2 if wide else 1)
    blocks = -(-words // 4)
    low = start + _count(ctx, blocks)
    high = secret + tf.cast(low < start, tf.uint64)  # the carry
    drawn = philox((_low(low), _high(low), _low(high), _high(high)), (_low(secret), _high(secret)))
    flat = tf.reshape(tf.stack(drawn, -1), [-1])[: ctx.dim(words)]
    bits = _join(flat[0::2], flat[1::2]) if wide else flat
    return reshape(ctx, bits, shape), blocks


@tf_rules.rule(p.rng_uniform_p)
def _uniform(ctx, a, b, *, shape):
    """From TensorFlow's generator with hidden state: other numbers each time."""
    sizes = ctx.shape(shape)
    if a.dtype.is_integer:
        word = tf.int64
        low, high = tf.cast(a, word), tf.cast(b, word)
        return tf.cast(tf.random.uniform(sizes, low, tf.maximum(high, low + 1), dtype=word), a.dtype)
    wide = a.dtype if a.dtype in (tf.float32, tf.float64) else tf.float32
    low, high = tf.cast(a, wide), tf.cast(b, wide)
    draws = tf.cast(low + (high - low) * tf.random.uniform(sizes, dtype=wide), a.dtype)
    return tf.where(draws < b, draws, a)  # rounding may have reached b
