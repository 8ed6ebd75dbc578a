"""Scalar types: `jnp.float32` and similar types, which make arrays when called and denote a dtype elsewhere."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.defining import with_example
from bedrax.numpy.creation import asarray


class ScalarType(type):
    """Class of the scalar types. Each has a `dtype` and equals NumPy's scalar type of that dtype."""

    dtype: np.dtype

    def __call__(cls, x: Any) -> Array:
        """`x` as an array of this dtype."""
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> builtins.bool:
        if cls is other:
            return True
        dtype = cls.dtype
        if isinstance(other, type):
            return dtype.type is other
        return isinstance(other, np.dtype) and dtype == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, x: object) -> builtins.bool:
        return isinstance(x, cls.dtype.type)


def _make(scalar: type) -> ScalarType:
    dtype = np.dtype(scalar)
    text = f"Makes arrays of dtype {dtype.name}. It is accepted wherever a dtype is."
    doc = with_example(text, f">>> jnp.dtype(jnp.{dtype.name}).name\n{dtype.name!r}")
    return ScalarType(dtype.name, (), {"dtype": dtype, "__doc__": doc, "__module__": "jax.numpy"})


bool: ScalarType = _make(np.bool_)  # noqa: A001
int1: ScalarType = _make(dtypes.int1)
int2: ScalarType = _make(dtypes.int2)
int4: ScalarType = _make(dtypes.int4)
int8: ScalarType = _make(np.int8)
int16: ScalarType = _make(np.int16)
int32: ScalarType = _make(np.int32)
int64: ScalarType = _make(np.int64)
uint1: ScalarType = _make(dtypes.uint1)
uint2: ScalarType = _make(dtypes.uint2)
uint4: ScalarType = _make(dtypes.uint4)
uint8: ScalarType = _make(np.uint8)
uint16: ScalarType = _make(np.uint16)
uint32: ScalarType = _make(np.uint32)
uint64: ScalarType = _make(np.uint64)
float4_e2m1fn: ScalarType = _make(dtypes.float4_e2m1fn)
float6_e2m3fn: ScalarType = _make(dtypes.float6_e2m3fn)
float6_e3m2fn: ScalarType = _make(dtypes.float6_e3m2fn)
float8_e3m4: ScalarType = _make(dtypes.float8_e3m4)
float8_e4m3: ScalarType = _make(dtypes.float8_e4m3)
float8_e4m3b11fnuz: ScalarType = _make(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: ScalarType = _make(dtypes.float8_e4m3fn)
float8_e4m3fnuz: ScalarType = _make(dtypes.float8_e4m3fnuz)
float8_e5m2: ScalarType = _make(dtypes.float8_e5m2)
float8_e5m2fnuz: ScalarType = _make(dtypes.float8_e5m2fnuz)
float8_e8m0fnu: ScalarType = _make(dtypes.float8_e8m0fnu)
bfloat16: ScalarType = _make(dtypes.bfloat16)
float16: ScalarType = _make(np.float16)
float32: ScalarType = _make(np.float32)
float64: ScalarType = _make(np.float64)
complex64: ScalarType = _make(np.complex64)
complex128: ScalarType = _make(np.complex128)
bool_: ScalarType = bool
single: ScalarType = float32
double: ScalarType = float64
csingle: ScalarType = complex64
cdouble: ScalarType = complex128
int_: ScalarType = int64
uint: ScalarType = uint64
float_: ScalarType = float64
complex_: ScalarType = complex128
