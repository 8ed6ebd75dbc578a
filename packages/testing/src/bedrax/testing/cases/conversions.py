"""Records of the conversions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from bedrax.lax.primitives import conversions as p
from bedrax.testing.records import OpCase, arg

CASES: list[OpCase] = []


def _add(prim, name, fun, args, oracle=None, **kw):
    CASES.append(OpCase(prim, name, fun, tuple(args), oracle, **kw))


def _to(name, dtype, args, oracle, **kw):
    _add(p.convert_element_type_p, name, lambda x: p.convert_to(x, np.dtype(dtype)), args, oracle, **kw)


def _bits(name, dtype, args, oracle, **kw):
    _add(p.bitcast_convert_type_p, name, lambda x: p.bitcast_convert_type(x, dtype), args, oracle, **kw)


_EDGE = np.float32([1e10, -1e10, np.nan, np.inf, -1.5, 300, 1.999])
_to("f32 i32", "int32", [_EDGE], lambda x: [2**31 - 1, -(2**31), 0, 2**31 - 1, -1, 300, 1], grad=())
_to("f32 u8", "uint8", [_EDGE], lambda x: [255, 0, 0, 255, 0, 255, 1], grad=())
_to("f32 i8", "int8", [_EDGE], lambda x: [127, -128, 0, 127, -1, 127, 1], grad=())
_to("f32 i64", "int64", [np.float64([1e30, -1e30, 2.0**40])], lambda x: [2**63 - 1, -(2**63), 2**40], grad=())
_to("f32 bool", bool, [np.float32([0, -0.0, 1, np.nan])], lambda x: [False, False, True, True], grad=())
_to("f32 bf16", "bfloat16", [arg((4,))], lambda x: x.astype(ml_dtypes.bfloat16), grad=())
_to("bf16 f32", "float32", [arg((4,), "bfloat16")], lambda x: x.astype("f"), grad=())
_to("f32 f8", "float8_e4m3fn", [arg((4,))], lambda x: x.astype(ml_dtypes.float8_e4m3fn), grad=())
_to("f64 c128", "complex128", [arg((2, 2), "float64")], lambda x: x + 0j)
_to("c128 f64", "float64", [arg((2, 2), "complex128")], np.real)
_to("c64 bool", bool, [np.complex64([0, 1j, 1])], lambda x: [False, True, True], grad=())
_to("i32 f32", "float32", [arg((3,), "int32", -9, 9)], lambda x: x.astype("f"))
_to("i32 u8", "uint8", [np.int32([-1, 256, 7])], lambda x: [255, 0, 7])
_to("i32 i4", "int4", [np.int32([-1, 8, 7])], lambda x: np.array([-1, -8, 7], ml_dtypes.int4))
_to("i4 i32", "int32", [np.array([-8, 7], ml_dtypes.int4)], lambda x: [-8, 7])
_to("bool i32", "int32", [np.array([True, False])], lambda x: [1, 0])
_to("bool bf16", "bfloat16", [np.array([True, False])], lambda x: np.array([1, 0], ml_dtypes.bfloat16))

_bits("f32 i32", "int32", [arg((2, 3))], lambda x: x.view("i4"), grad=())
_bits("f32 u8", "uint8", [arg((3,))], lambda x: x[:, None].view("u1"), grad=())
_bits("u8 f32", "float32", [arg((3, 4), "uint8", 0, 120)], lambda x: x.view("f4")[:, 0])
_bits("scalar", "uint16", [np.float32(1)], lambda x: [0, 16256], grad=())
_bits("bf16 u16", "uint16", [arg((3,), "bfloat16")], lambda x: x.view("u2"), grad=())
_bits("i8 i4", "int4", [np.int8([0x21, -1])], lambda x: np.array([[1, 2], [-1, -1]], ml_dtypes.int4))
_bits("i4 i8", "int8", [np.array([[1, 2], [-1, -1]], ml_dtypes.int4)], lambda x: np.int8([0x21, -1]))

_fewer = p.reduce_precision_p
_add(
    _fewer,
    "bf16 grid",
    lambda x: p.reduce_precision(x, 8, 7),
    [arg((6,))],
    grad=(),
    oracle=lambda x: x.astype(ml_dtypes.bfloat16).astype("f"),
)
_add(
    _fewer,
    "f16 grid",
    lambda x: p.reduce_precision(x, 5, 10),
    [np.float32([1.0001, 70000, -1e-9, 3.3333, np.nan, -np.inf])],
    grad=(),
    oracle=lambda x: np.float32([1, np.inf, -0.0, np.float16(3.3333), np.nan, -np.inf]),
)
_add(
    _fewer,
    "f64",
    lambda x: p.reduce_precision(x, 8, 23),
    [arg((3,), "float64")],
    grad=(),
    oracle=lambda x: x.astype("f").astype("d"),
)
_add(
    _fewer,
    "bf16",
    lambda x: p.reduce_precision(x, 4, 3),
    [arg((5,), "bfloat16", 0.1, 4)],
    grad=(),
    oracle=lambda x: x.astype(ml_dtypes.float8_e4m3fn).astype("f"),
)
_add(
    _fewer,
    "subnormal f16",
    lambda x: p.reduce_precision(x, 5, 9),
    [np.float16([6e-8, 1.2e-7, 1.8e-7, 1e-5, 65504])],
    grad=(),
    oracle=lambda x: np.float32([0, 2**-23, 2**-22, 2**-17 + 2**-19 + 2**-21 + 2**-22, np.inf]),
)
for _dtype in ("float8_e4m3fn", "float8_e5m2"):
    _add(
        _fewer,
        f"{_dtype} in float16",
        lambda x: p.reduce_precision(x, 5, 3),
        [np.float32([2**-9, 3 * 2**-9, 448, 1.75]).astype(_dtype)],
        grad=(),
        oracle=lambda x: x.astype("f"),
    )
_add(_fewer, "identity", lambda x: p.reduce_precision(x, 11, 52), [arg((3,))], oracle=lambda x: x)
