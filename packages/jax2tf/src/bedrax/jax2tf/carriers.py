"""Computation in another dtype if TensorFlow's kernels lack one, and common casts and shapes of rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bedrax.core.typing import ArrayLike
from bedrax.tf import tensorflow as tf

# dtypes without arithmetic in TensorFlow's kernels -> a dtype that holds every value.
_NARROW_INTS = ("int2", "uint2", "int4", "uint4")


def is_narrow_int(tf_dtype: Any) -> bool:
    """Whether elements have fewer than 8 bits."""
    return tf_dtype.name in _NARROW_INTS


def is_narrow_float(tf_dtype: Any) -> bool:
    """Whether elements are floats of 8 bits or fewer."""
    return tf_dtype.name.startswith(("float8", "float4"))


def has_kernels(tf_dtype: Any) -> bool:
    """Whether TensorFlow's kernels support the dtype at all."""
    return not (is_narrow_int(tf_dtype) or is_narrow_float(tf_dtype))


def carrier(tf_dtype: Any) -> Any:
    """The dtype to compute in: itself, or int32 for narrow integers and float32 for narrow floats."""
    if is_narrow_int(tf_dtype):
        return tf.int32
    return tf.float32 if is_narrow_float(tf_dtype) else tf_dtype


def accumulator(tf_dtype: Any) -> Any:
    """The dtype for sums and products: float32 for floats of 16 bits and fewer, int32 for narrow integers."""
    return tf.float32 if tf_dtype in (tf.float16, tf.bfloat16) else carrier(tf_dtype)


def cast(x: ArrayLike, tf_dtype: Any) -> Any:
    """Convert values that fit, or that wrap around (integers) or are rounded (floats)."""
    if x.dtype == tf_dtype:
        return x
    source = x.dtype
    for dtype in (source, tf_dtype):
        if dtype.name in ("int2", "uint2"):
            raise NotImplementedError(
                f"operations on {dtype.name}: TensorFlow does not convert integers of two bits; convert to int8 or int4 first"
            )
    if is_narrow_int(source) and not (tf_dtype.is_integer and has_kernels(tf_dtype)):
        x = tf.cast(x, tf.int8)  # narrow integers can be cast to integers only
    elif (is_narrow_float(source) or source.is_complex) and not tf_dtype.is_complex and tf_dtype != tf.float32:
        real = tf.math.real(x) if source.is_complex else tf.cast(x, tf.float32)
        return cast(real, tf_dtype)
    if is_narrow_int(tf_dtype):
        return tf.cast(x if x.dtype.is_integer and has_kernels(x.dtype) else tf.cast(x, tf.int32), tf_dtype)
    if is_narrow_float(tf_dtype) and not x.dtype.is_floating:
        x = tf.cast(x, tf.float32)
    if x.dtype.is_complex and not tf_dtype.is_complex:
        x = tf.math.real(x)  # the cast does this too, with a warning
    return tf.cast(x, tf_dtype)


def in_carrier(rule: Callable[..., Any], target: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A rule for operands of one dtype, applied in the dtype ``target(dtype)`` (default `carrier`).

    Results of that dtype are converted back.
    """
    wide = target or carrier

    @functools.wraps(rule)
    def converted(ctx, *args, **params):
        dtype = args[0].dtype
        carried = wide(dtype)
        if carried == dtype:
            return rule(ctx, *args, **params)
        out = rule(ctx, *[cast(x, carried) if x.dtype == dtype else x for x in args], **params)
        back = lambda y: cast(y, dtype) if y.dtype == carried else y
        return [back(y) for y in out] if isinstance(out, list) else back(out)

    return converted


def moved(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that only moves elements, also for dtypes without kernels."""
    return in_carrier(rule, storage)


def storage(tf_dtype: Any) -> Any:
    """The dtype to keep elements in: itself, or int8 for narrow integers and float32 for narrow floats."""
    if is_narrow_int(tf_dtype):
        return tf.int8
    return tf.float32 if is_narrow_float(tf_dtype) else tf_dtype
