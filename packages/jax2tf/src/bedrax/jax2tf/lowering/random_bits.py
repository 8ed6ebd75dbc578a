"""TensorFlow for random bits; the generators are composed (`bedrax.lax.decompositions.random_bits`)."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import random_bits as p
from bedrax.tf import tensorflow as tf


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
    return tf.where(draws < b, draws, a)  # rounding may give b
