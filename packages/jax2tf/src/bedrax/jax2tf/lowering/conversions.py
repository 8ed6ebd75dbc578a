"""TensorFlow for conversions: casts that saturate like XLA's, bits, and rounding to smaller formats."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.core.typing import ArrayLike
from bedrax.jax2tf.carriers import cast, has_kernels, is_narrow_float, is_narrow_int
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import np_dtype, scalar
from bedrax.lax.primitives import conversions as p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


def convert(x: ArrayLike, dtype: np.dtype) -> Any:
    """`x` in another dtype, by the rules of `lax.convert_element_type`."""
    target = types.tf_dtype(dtype)
    if x.dtype == target:
        return x
    if target == tf.bool:
        if x.dtype.is_complex or has_kernels(x.dtype):
            return tf.not_equal(x, scalar(0, x))
        return tf.not_equal(cast(x, tf.float32), 0)
    if x.dtype.is_complex and not target.is_complex:
        x = tf.math.real(x)
    if target.is_integer and (x.dtype.is_floating or is_narrow_float(x.dtype)):
        return _saturate(cast(x, tf.float32) if x.dtype.size < 4 else x, dtype)
    if target.is_complex and not x.dtype.is_complex:
        part = tf.float32 if target == tf.complex64 else tf.float64
        real = cast(x, part)
        return tf.complex(real, tf.zeros_like(real))
    return cast(x, target)


def _saturate(x, dtype: np.dtype):
    """Float to integer: towards zero, nan to 0, values out of range to the nearest value in range."""
    info, float_type = dtypes.iinfo(dtype), np_dtype(x).type
    low, high = int(info.min), int(info.max)
    first_above = float_type(high + 1) if high >= 1 << 20 else float_type(high)  # a power of two, or exact
    inside_high = np.nextafter(first_above, float_type(0)) if high >= 1 << 20 else first_above
    narrow = is_narrow_int(types.tf_dtype(dtype))
    x = tf.where(tf.not_equal(x, x), scalar(0, x), x)
    out = tf.clip_by_value(x, scalar(low, x), scalar(inside_high, x))
    carrier = tf.int32 if narrow else types.tf_dtype(dtype)
    out = tf.cast(out, carrier)
    if high >= 1 << 20:
        out = tf.where(x >= scalar(first_above, x), scalar(high, out), out)
    return cast(out, types.tf_dtype(dtype))


tf_rules.add(p.convert_element_type_p, lambda ctx, x, *, new_dtype, weak_type: convert(x, new_dtype))


@tf_rules.rule(p.bitcast_convert_type_p)
def _bitcast(ctx, x, *, new_dtype):
    target = types.tf_dtype(new_dtype)
    if x.dtype == target:
        return x
    if is_narrow_float(x.dtype) or is_narrow_float(target):
        raise NotImplementedError(
            f"bitcast_convert_type of {x.dtype.name}: TensorFlow's bitcast has no kernel for it; convert to float16 or wider"
        )
    old, new = ctx.avals_in[0].dtype, new_dtype
    old_bits, new_bits = dtypes.itemsize_bits(old), dtypes.itemsize_bits(new)
    if old_bits >= 8 and new_bits >= 8 and tf.bool not in (x.dtype, target):
        return tf.bitcast(x, target)
    # Fewer bits than a byte: split into bits along a new axis, low bits first, and join them again.
    if old_bits < 8:
        raw = tf.bitwise.bitwise_and(tf.cast(tf.cast(x, tf.int8), tf.int32), (1 << old_bits) - 1)
        if new_bits == old_bits:
            return cast(raw, target)
        shifts = tf.range(new_bits // old_bits) * old_bits
        if new_bits > 32:
            raise NotImplementedError(f"bitcast_convert_type from {old} to {new}: go through int8")
        whole = tf.reduce_sum(tf.bitwise.left_shift(raw, shifts), -1)
        return tf.bitcast(tf.cast(whole, tf.as_dtype(f"uint{new_bits}")), target)
    if target == tf.bool or x.dtype == tf.bool:
        raise NotImplementedError(
            f"bitcast_convert_type from {old} to {new}: compare with 0, or use convert_element_type"
        )
    raw = tf.cast(tf.bitcast(x, tf.uint8), tf.int32)
    pieces = 8 // new_bits
    split = tf.bitwise.right_shift(raw[..., None], tf.range(pieces) * new_bits)
    if old_bits > 8:
        split = tf.reshape(split, tf.concat([tf.shape(x), [pieces * (old_bits // 8)]], 0))
    return cast(tf.bitwise.bitwise_and(split, (1 << new_bits) - 1), target)


@tf_rules.rule(p.reduce_precision_p)
def _reduce_precision(ctx, x, *, exponent_bits, mantissa_bits):
    own = x.dtype
    if is_narrow_float(own):  # as in XLA, the bits are those of a float16
        x = cast(x, tf.float16)
    return cast(round_bits(x, exponent_bits, mantissa_bits), own)


def round_bits(x: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Any:
    """Floats of 16 or more bits rounded to a format with fewer bits: ties to even, overflow to infinity, underflow to
    zero."""
    info = dtypes.finfo(np_dtype(x))
    total = 8 * x.dtype.size
    unsigned = tf.as_dtype(f"uint{total}")
    word = lambda v: tf.constant(v, unsigned)
    both, either, down = tf.bitwise.bitwise_and, tf.bitwise.bitwise_or, tf.bitwise.right_shift
    bits = tf.bitcast(x, unsigned)
    if mantissa_bits < info.nmant:
        dropped = info.nmant - mantissa_bits
        # Round half to even: add just below half, plus one if the last kept bit is odd.
        odd = both(down(bits, word(dropped)), word(1))
        bits = bits + (word((1 << (dropped - 1)) - 1) + odd)
        bits = both(bits, word(~((1 << dropped) - 1) & ((1 << total) - 1)))
    if exponent_bits < info.nexp:
        infinity = word(((1 << info.nexp) - 1) << info.nmant)
        sign, exponent = both(bits, word(1 << (total - 1))), both(bits, infinity)
        bias, small_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        bits = tf.where(exponent > word((bias + small_bias) << info.nmant), either(sign, infinity), bits)
        bits = tf.where(exponent <= word((bias - small_bias) << info.nmant), sign, bits)
    return tf.where(tf.not_equal(x, x), x, tf.bitcast(bits, x.dtype))
