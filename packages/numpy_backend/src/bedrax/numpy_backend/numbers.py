"""Arithmetic on dtypes that NumPy lacks: the dtype to compute in, rounding, and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes

_F32 = np.dtype(np.float32)


def native(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which NumPy computes for `dtype`."""
    if dtypes.is_native(dtype):
        return dtype
    return _F32 if dtypes.issubdtype(dtype, np.floating) else np.dtype(np.int32)


def narrow(y: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray:
    """Round to a type that is narrower, or that NumPy lacks; integers wrap around."""
    y = np.asarray(y)
    if dtype in dtypes.narrow_int_dtypes:
        bits = dtypes.itemsize_bits(dtype)
        y = y & ((1 << bits) - 1)
        if dtype in dtypes.signed_dtypes:
            y = y - ((y >> (bits - 1)) << bits)
        y = np.asarray(y).astype(np.int8)
    with np.errstate(all="ignore"):
        return y.astype(dtype, copy=False)


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert `x` to another dtype by the rules of `lax.convert_element_type`."""
    source = x.dtype
    if source == dtype:
        return x
    if dtype == np.bool_:
        return np.asarray((x if dtypes.is_native(source) else x.astype(np.float32)) != 0)
    with np.errstate(all="ignore"):
        if dtypes.issubdtype(source, np.complexfloating) and not dtypes.issubdtype(dtype, np.complexfloating):
            x = x.real
            source = x.dtype
        if dtypes.is_integer(dtype):
            if dtypes.issubdtype(source, np.floating):
                return dtypes.as_integers(x, dtype)
            if not dtypes.is_native(dtype):
                return narrow(x.astype(np.int64), dtype)
            if not dtypes.is_native(source):
                x = x.astype(np.int8)
            return x.astype(dtype)
        if not dtypes.is_native(source) and not dtypes.is_native(dtype):
            x = x.astype(np.float32)  # exact for all narrow types
        return x.astype(dtype)
