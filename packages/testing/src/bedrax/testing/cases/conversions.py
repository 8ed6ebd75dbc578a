"""Records of the conversions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from bedrax.lax.primitives import conversions as p
from bedrax.testing.records import OpCase, arg

CASES: list[OpCase] = []


def _convert(dtype):
    dtype = np.dtype(dtype)
    return lambda x: p.convert_to(x, dtype)


def _add(prim, name, fun, args, **kw):
    CASES.append(OpCase(prim, name, fun, tuple(args), **kw))


_EDGE = np.float32([1e10, -1e10, np.nan, np.inf, -1.5, 300, 1.999])
_to = p.convert_element_type_p
_add(
    _to,
    "f32 i32",
    _convert("int32"),
    [_EDGE],
    grad=(),
    oracle=lambda x: [2**31 - 1, -(2**31), 0, 2**31 - 1, -1, 300, 1],
)
_add(_to, "f32 u8", _convert("uint8"), [_EDGE], grad=(), oracle=lambda x: [255, 0, 0, 255, 0, 255, 1])
_add(_to, "f32 i8", _convert("int8"), [_EDGE], grad=(), oracle=lambda x: [127, -128, 0, 127, -1, 127, 1])
_add(
    _to,
    "f32 i64",
    _convert("int64"),
    [np.float64([1e30, -1e30, 2.0**40])],
    grad=(),
    oracle=lambda x: [2**63 - 1, -(2**63), 2**40],
)
_add(
    _to,
    "f32 bool",
    _convert(bool),
    [np.float32([0, -0.0, 1, np.nan])],
    grad=(),
    oracle=lambda x: [False, False, True, True],
)
_add(
    _to, "f32 bf16", _convert("bfloat16"), [arg((4,))], oracle=lambda x: x.astype(ml_dtypes.bfloat16), grad=()
)
_add(_to, "bf16 f32", _convert("float32"), [arg((4,), "bfloat16")], oracle=lambda x: x.astype("f"), grad=())
_add(
    _to,
    "f32 f8",
    _convert("float8_e4m3fn"),
    [arg((4,))],
    oracle=lambda x: x.astype(ml_dtypes.float8_e4m3fn),
    grad=(),
)
_add(_to, "f64 c128", _convert("complex128"), [arg((2, 2), "float64")], oracle=lambda x: x + 0j)
_add(_to, "c128 f64", _convert("float64"), [arg((2, 2), "complex128")], oracle=np.real)
_add(
    _to, "c64 bool", _convert(bool), [np.complex64([0, 1j, 1])], oracle=lambda x: [False, True, True], grad=()
)
_add(_to, "i32 f32", _convert("float32"), [arg((3,), "int32", -9, 9)], oracle=lambda x: x.astype("f"))
_add(_to, "i32 u8", _convert("uint8"), [np.int32([-1, 256, 7])], oracle=lambda x: [255, 0, 7])
_add(
    _to,
    "i32 i4",
    _convert("int4"),
    [np.int32([-1, 8, 7])],
    oracle=lambda x: np.array([-1, -8, 7], ml_dtypes.int4),
)
_add(_to, "i4 i32", _convert("int32"), [np.array([-8, 7], ml_dtypes.int4)], oracle=lambda x: [-8, 7])
_add(_to, "bool i32", _convert("int32"), [np.array([True, False])], oracle=lambda x: [1, 0])
_add(
    _to,
    "bool bf16",
    _convert("bfloat16"),
    [np.array([True, False])],
    oracle=lambda x: np.array([1, 0], ml_dtypes.bfloat16),
)

_bits = p.bitcast_convert_type_p


def _cast(dtype):
    return lambda x: p.bitcast_convert_type(x, dtype)


_add(_bits, "f32 i32", _cast("int32"), [arg((2, 3))], oracle=lambda x: x.view("i4"), grad=())
_add(_bits, "f32 u8", _cast("uint8"), [arg((3,))], oracle=lambda x: x[:, None].view("u1"), grad=())
_add(_bits, "u8 f32", _cast("float32"), [arg((3, 4), "uint8", 0, 120)], oracle=lambda x: x.view("f4")[:, 0])
_add(_bits, "scalar", _cast("uint16"), [np.float32(1)], oracle=lambda x: [0, 16256], grad=())
_add(_bits, "bf16 u16", _cast("uint16"), [arg((3,), "bfloat16")], oracle=lambda x: x.view("u2"), grad=())
_add(
    _bits,
    "i8 i4",
    _cast("int4"),
    [np.int8([0x21, -1])],
    oracle=lambda x: np.array([[1, 2], [-1, -1]], ml_dtypes.int4),
)
_add(
    _bits,
    "i4 i8",
    _cast("int8"),
    [np.array([[1, 2], [-1, -1]], ml_dtypes.int4)],
    oracle=lambda x: np.int8([0x21, -1]),
)

_fewer = p.reduce_precision_p
_add(_fewer, "bf16 grid", lambda x: p.reduce_precision(x, 8, 7), [arg((6,))], grad=(),
     oracle=lambda x: x.astype(ml_dtypes.bfloat16).astype("f"))  # fmt: skip
_add(_fewer, "f16 grid", lambda x: p.reduce_precision(x, 5, 10), [np.float32([1.0001, 70000, -1e-9, 3.3333, np.nan, -np.inf])],
     grad=(), oracle=lambda x: np.float32([1, np.inf, -0.0, np.float16(3.3333), np.nan, -np.inf]))  # fmt: skip
_add(_fewer, "f64", lambda x: p.reduce_precision(x, 8, 23), [arg((3,), "float64")], grad=(),
     oracle=lambda x: x.astype("f").astype("d"))  # fmt: skip
_add(_fewer, "bf16", lambda x: p.reduce_precision(x, 4, 3), [arg((5,), "bfloat16", 0.1, 4)], grad=(),
     oracle=lambda x: x.astype(ml_dtypes.float8_e4m3fn).astype("f"))  # fmt: skip
_add(_fewer, "identity", lambda x: p.reduce_precision(x, 11, 52), [arg((3,))], oracle=lambda x: x)
