"""Primitives that change the dtype or the precision: conversion, bit casts, rounding to fewer bits."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from bedrax.core import blame, dims, dtypes, executors, source
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.elementwise_kinds import FLOAT, accepted, dtype_refused

pure_shapes.add(__name__)

__all__ = [
    "asarray",
    "bitcast_convert_type",
    "bitcast_convert_type_p",
    "convert_element_type",
    "convert_element_type_p",
    "convert_to",
    "dtype",
    "reduce_precision",
    "reduce_precision_p",
]

convert_element_type_p: Final = Primitive("convert_element_type", "conversions")
bitcast_convert_type_p: Final = Primitive("bitcast_convert_type", "conversions")
reduce_precision_p: Final = Primitive("reduce_precision", "conversions")


@convert_element_type_p.abstract
def _convert_shape(x, *, new_dtype, weak_type):
    return ShapedArray(x.shape, new_dtype, weak_type, memory_space=x.memory_space, vma=x.vma)


def _same_bits_only(dtype) -> bool:
    return dtype == np.bool_ or dtypes.issubdtype(dtype, np.complexfloating)


@bitcast_convert_type_p.abstract
def _bitcast_shape(x, *, new_dtype):
    if x.dtype == new_dtype:
        return x.update(weak_type=False)
    old_bits, new_bits = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    shape = x.shape
    if old_bits < new_bits:
        last = shape[-1] if shape else 1
        if not shape or not dims.is_constant_dim(last) or last * old_bits != new_bits:
            raise ValueError(
                f"bitcast_convert_type: {x.dtype} of shape {shape} to {new_dtype} joins the last axis, which does not"
                f" fit: {last} * {old_bits} != {new_bits} bits"
            )
        shape = shape[:-1]
    elif old_bits > new_bits:
        if old_bits % new_bits:
            raise ValueError(
                f"bitcast_convert_type: {x.dtype} to {new_dtype}: {old_bits} bits are not a multiple of {new_bits}"
            )
        shape = (*shape, old_bits // new_bits)
    if _same_bits_only(x.dtype) or _same_bits_only(new_dtype):
        raise TypeError(f"bitcast_convert_type: {x.dtype} to {new_dtype}: use x.view(dtype) to split bool and complex")
    return ShapedArray(shape, new_dtype, vma=x.vma)


@reduce_precision_p.abstract
def _reduce_precision_shape(x, *, exponent_bits, mantissa_bits):
    if not accepted(FLOAT)[x.dtype]:
        raise dtype_refused("reduce_precision", x.dtype, FLOAT)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits is 1 at least, got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(f"reduce_precision: mantissa_bits is not negative, got {mantissa_bits}")
    return x


def convert_to(x: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """`x` as an array of the canonical `dtype` with the given weakness; `x` itself if it has both.

    This form has no checks and warnings; rules and `bedrax.numpy` use it.
    """
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and not dtypes.is_python_scalar(x):
        return x
    if dtypes.is_extended(aval.dtype) or dtypes.is_extended(dtype):
        if aval.dtype == dtype:
            return x
        extended = dtype if dtypes.is_extended(dtype) else aval.dtype
        if hasattr(extended, "converted"):
            return extended.converted(x, dtype)
        raise dtypes.ExtendedPromotionError(f"convert_element_type: {aval.dtype} has no conversion to {dtype}")
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


def _from_long_int(x: int, dtype: np.dtype) -> np.ndarray:
    """A Python int that the default integers do not hold, wrapped around or rounded."""
    if not dtypes.issubdtype(dtype, np.integer):
        return np.asarray(float(x)).astype(dtype)
    bits = dtypes.itemsize_bits(dtype)
    x &= (1 << bits) - 1
    if dtypes.issubdtype(dtype, np.signedinteger) and x >> (bits - 1):
        x -= 1 << bits
    return np.asarray(x).astype(dtype)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert elements to another dtype.

    Floats become integers by truncation towards zero, saturating at the ends of the range, and nan
    becomes 0; integers wrap around; complex numbers lose their imaginary parts (with a
    `numpy.exceptions.ComplexWarning`); anything becomes bool by comparison with zero.

    Args:
      operand: array or scalar.
      new_dtype: the dtype to convert to. Python's ``int``, ``float`` and ``complex`` mean the default
        dtypes, weakly typed.

    Returns:
      An array of the same shape; `operand` itself if it is one of that dtype already.

    Raises:
      ValueError: `new_dtype` is None.
      TypeError: `operand` is not an array or scalar.

    Examples:

      >>> lax.convert_element_type(jnp.array([1.5, -1.5]), jnp.int32)
      Array([ 1, -1], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: new_dtype is None; name a dtype")
    if isinstance(operand, list | tuple) or operand is None:
        raise blame.not_an_array(operand, "convert_element_type", 0)
    dtype = dtypes.explicit_dtype(new_dtype, "convert_element_type")
    if type(operand) is int and isinstance(dtype, np.dtype) and not -(2**31) <= operand < 2**31:
        operand = asarray(_from_long_int(operand, dtype))
    elif isinstance(operand, (float, np.ndarray, np.floating)) and dtypes.is_integer(dtype):
        # Without x64, a program would read numbers of 64 bits as float32.
        if dtypes.is_floating(dtypes.dtype_of(operand)) and getattr(operand, "dtype", None) != np.float32:
            operand = dtypes.as_integers(operand, dtype)
    aval = aval_of(operand)
    if (
        isinstance(dtype, np.dtype)
        and dtypes.issubdtype(aval.dtype, np.complexfloating)
        and not dtypes.issubdtype(dtype, np.complexfloating)
        and dtype != np.bool_
    ):
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=source.stacklevel(),
        )
    return asarray(convert_to(operand, dtype, False))


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Read the bits of the elements as another dtype.

    Args:
      operand: array of integers or floats.
      new_dtype: where its elements are wider, the last axis of `operand` is consumed (it must hold just
        the bits of one element, low bits first); where they are narrower, a new last axis is made.

    Raises:
      TypeError: one of the types is bool or complex, and they differ.
      ValueError: the sizes do not fit.

    Examples:

      >>> lax.bitcast_convert_type(jnp.float32(1), jnp.int32) == 0x3F800000
      Array(True, dtype=bool)
      >>> lax.bitcast_convert_type(jnp.array([1, 256], jnp.int32), jnp.uint8)
      Array([[1, 0, 0, 0],
             [0, 1, 0, 0]], dtype=uint8)
    """
    return bitcast_convert_type_p.bind(operand, new_dtype=dtypes.explicit_dtype(new_dtype, "bitcast_convert_type"))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to those of a format with fewer bits, without changing the dtype.

    Args:
      operand: array of floats.
      exponent_bits: number of exponent bits of the format, at least 1.
      mantissa_bits: number of stored significand bits, at least 0.

    Returns:
      The values rounded to nearest even; infinite where the format overflows, zero (with the sign) where
      the format has no normal number.

    Examples:

      >>> lax.reduce_precision(jnp.float32(jnp.pi), exponent_bits=8, mantissa_bits=7)
      Array(3.140625, dtype=float32)
    """
    return reduce_precision_p.bind(operand, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits))


def asarray(x: Any) -> Any:
    """A scalar, NumPy array or array as an array of the current executor; tracers and arrays pass unchanged.

    Without an installed backend, everything passes unchanged: programs are then traced and not run.
    """
    if isinstance(x, Array) or not executors.any_offered():
        return x
    return executors.get().asarray(x)


def dtype(x: Any) -> np.dtype[Any]:
    """The dtype of a value, or the dtype that a Python scalar type, a NumPy type or a name denotes.

    With 64-bit types disabled, their 32-bit counterparts replace them.

    Raises:
      TypeError: `x` is neither a value nor a type.

    Examples:

      >>> lax.dtype(jnp.ones(3, jnp.bfloat16))
      dtype(bfloat16)
    """
    if x is None:
        raise TypeError("dtype(None): a value or a type is needed")
    if isinstance(x, str | type | np.dtype | dtypes.ExtendedDType):
        if x in (bool, int, float, complex):
            return dtypes.python_scalar_dtype(x)
        return dtypes.explicit_dtype(x)
    return dtypes.dtype_of(x)
