"""Scalar types: `jnp.float32` and similar types, which make arrays when called and denote a dtype elsewhere."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np
from bedrax.core import dtypes
from bedrax.core.array import Array
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


def _make(dtype: np.dtype) -> ScalarType:
    doc = f"Makes arrays of dtype {dtype.name}, and stands for that dtype."
    return ScalarType(dtype.name, (), {"dtype": dtype, "__doc__": doc, "__module__": "jax.numpy"})


SCALAR_TYPES: dict[str, ScalarType] = {d.name: _make(d) for d in dtypes.all_dtypes}
SCALAR_TYPES.update(
    bool_=SCALAR_TYPES["bool"],
    single=SCALAR_TYPES["float32"],
    double=SCALAR_TYPES["float64"],
    csingle=SCALAR_TYPES["complex64"],
    cdouble=SCALAR_TYPES["complex128"],
    int_=SCALAR_TYPES["int64"],
    uint=SCALAR_TYPES["uint64"],
    float_=SCALAR_TYPES["float64"],
    complex_=SCALAR_TYPES["complex128"],
)
globals().update(SCALAR_TYPES)

if TYPE_CHECKING:
    bool: ScalarType  # noqa: A001
    int1: ScalarType
    int2: ScalarType
    int4: ScalarType
    int8: ScalarType
    int16: ScalarType
    int32: ScalarType
    int64: ScalarType
    uint1: ScalarType
    uint2: ScalarType
    uint4: ScalarType
    uint8: ScalarType
    uint16: ScalarType
    uint32: ScalarType
    uint64: ScalarType
    float4_e2m1fn: ScalarType
    float6_e2m3fn: ScalarType
    float6_e3m2fn: ScalarType
    float8_e3m4: ScalarType
    float8_e4m3: ScalarType
    float8_e4m3b11fnuz: ScalarType
    float8_e4m3fn: ScalarType
    float8_e4m3fnuz: ScalarType
    float8_e5m2: ScalarType
    float8_e5m2fnuz: ScalarType
    float8_e8m0fnu: ScalarType
    bfloat16: ScalarType
    float16: ScalarType
    float32: ScalarType
    float64: ScalarType
    complex64: ScalarType
    complex128: ScalarType
    bool_: ScalarType
    single: ScalarType
    double: ScalarType
    csingle: ScalarType
    cdouble: ScalarType
    int_: ScalarType
    uint: ScalarType
    float_: ScalarType
    complex_: ScalarType
