"""TensorFlow for cumulative reductions: sums and products; the others are composed."""

from bedrax.jax2tf.carriers import accumulator, in_carrier
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import cumulative as p
from bedrax.lax.tables import decompositions
from bedrax.tf import tensorflow as tf


def _sums(dtype):
    """The dtype of the sum; TensorFlow's XLA has these operations for 32 bits and more only."""
    if dtype.is_integer and dtype.size < 4:
        return tf.int32
    return accumulator(dtype)


def _on_signed(rule):
    """A rule for integers that wrap around: TensorFlow's XLA has no kernels for unsigned ones."""

    def signed(ctx, x, **params):
        if not x.dtype.is_unsigned:
            return rule(ctx, x, **params)
        return tf.bitcast(rule(ctx, tf.bitcast(x, tf.as_dtype(x.dtype.name[1:])), **params), x.dtype)

    return signed


def _cumsum(ctx, x, *, axis, reverse):
    if x.dtype.is_complex:  # TensorFlow's XLA has no kernel for it
        parts = (tf.math.real(x), tf.math.imag(x))
        return tf.complex(*[tf.cumsum(part, axis, reverse=reverse) for part in parts])
    return tf.cumsum(x, axis, reverse=reverse)


def _cumprod(ctx, x, *, axis, reverse):
    if x.dtype.is_complex:
        return ctx.composed(decompositions[p.cumprod_p], [x], dict(axis=axis, reverse=reverse))
    return tf.math.cumprod(x, axis, reverse=reverse)


tf_rules.add(p.cumsum_p, in_carrier(_on_signed(_cumsum), _sums))
tf_rules.add(p.cumprod_p, in_carrier(_on_signed(_cumprod), _sums))
