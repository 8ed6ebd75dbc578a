"""Records of the elementwise primitives."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from bedrax.lax.primitives import elementwise as p
from bedrax.testing.records import OpCase, arg

INTS = ("int32", "uint8", "int4", "uint64")
NAN, INF = np.nan, np.inf

CASES: list[OpCase] = []


def _add(prim, name, fun, args, **kw):
    CASES.append(OpCase(prim, name, fun, tuple(args), **kw))


def _wide(oracle):
    """An oracle for narrow floats: computed in float32."""
    return lambda *xs: oracle(*[x.astype(np.float32) for x in xs])


# ---- functions of one float ----------------------------------------------------------------------

# primitive: (function, NumPy oracle, range, complex too)
_SMOOTH = {
    p.exp_p: (p.exp, np.exp, (-2, 2), True),
    p.exp2_p: (p.exp2, np.exp2, (-2, 2), True),
    p.expm1_p: (p.expm1, np.expm1, (-2, 2), True),
    p.log_p: (p.log, np.log, (0.1, 3), True),
    p.log1p_p: (p.log1p, np.log1p, (-0.7, 2), True),
    p.sqrt_p: (p.sqrt, np.sqrt, (0.1, 4), True),
    p.rsqrt_p: (p.rsqrt, lambda x: 1 / np.sqrt(x), (0.1, 4), True),
    p.cbrt_p: (p.cbrt, np.cbrt, (0.1, 4), False),
    p.sin_p: (p.sin, np.sin, (-4, 4), True),
    p.cos_p: (p.cos, np.cos, (-4, 4), True),
    p.tan_p: (p.tan, np.tan, (-1.2, 1.2), True),
    p.tanh_p: (p.tanh, np.tanh, (-2, 2), True),
    p.sinh_p: (p.sinh, np.sinh, (-2, 2), True),
    p.cosh_p: (p.cosh, np.cosh, (-2, 2), True),
    p.asin_p: (p.asin, np.arcsin, (-0.8, 0.8), True),
    p.acos_p: (p.acos, np.arccos, (-0.8, 0.8), True),
    p.atan_p: (p.atan, np.arctan, (-2, 2), True),
    p.asinh_p: (p.asinh, np.arcsinh, (-2, 2), True),
    p.acosh_p: (p.acosh, np.arccosh, (1.3, 4), True),
    p.atanh_p: (p.atanh, np.arctanh, (-0.8, 0.8), True),
    p.logistic_p: (p.logistic, lambda x: 1 / (1 + np.exp(-x)), (-3, 3), True),
}
for _prim, (_fun, _oracle, (_low, _high), _complex) in _SMOOTH.items():
    _add(_prim, "f32", _fun, [arg((2, 3), "float32", _low, _high)], oracle=_oracle)
    _add(_prim, "bf16", _fun, [arg((3,), "bfloat16", _low, _high)], oracle=_wide(_oracle), grad=())
    _add(_prim, "f16", _fun, [arg((3,), "float16", _low, _high)], oracle=_wide(_oracle), grad=())
    _add(_prim, "f64", _fun, [arg((), "float64", _low, _high)], oracle=_oracle, grad=())
    if _complex:
        _oracle = (lambda x: np.exp(x * np.log(2))) if _prim is p.exp2_p else _oracle
        _add(_prim, "c64", _fun, [arg((3,), "complex64", _low, min(_high, 2))], oracle=_oracle, rtol=1e-4)

_add(p.exp_p, "accuracy", lambda x: p.exp(x, accuracy=p.AccuracyMode.HIGHEST), [arg((3,))], oracle=np.exp)
_add(p.tanh_p, "special", p.tanh, [np.float32([INF, -INF, NAN, 0.0, 1e-30])], oracle=np.tanh, grad=())
_add(
    p.logistic_p,
    "far",
    p.logistic,
    [np.float32([-200, 200, 0])],
    oracle=lambda x: np.float32([0, 1, 0.5]),
    grad=(),
)

# ---- steps and signs -----------------------------------------------------------------------------

_EDGES = np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, NAN, INF, -0.0])


def _half_away(x):
    return np.float32([-3, -2, -1, 1, 2, 3, 0, NAN, INF, -0.0])


_add(p.floor_p, "edges", p.floor, [_EDGES], oracle=np.floor, grad=())
_add(p.floor_p, "f32", p.floor, [arg((4,), low=-3, high=3)], oracle=np.floor, second=False)
_add(p.floor_p, "bf16", p.floor, [arg((4,), "bfloat16", -3, 3)], oracle=_wide(np.floor), grad=())
_add(p.ceil_p, "edges", p.ceil, [_EDGES], oracle=np.ceil, grad=())
_add(p.round_p, "away", p.round, [_EDGES], oracle=_half_away, grad=())
_add(
    p.round_p, "even", lambda x: p.round(x, p.RoundingMethod.TO_NEAREST_EVEN), [_EDGES], oracle=np.round, grad=()
)  # fmt: skip
_add(p.is_finite_p, "edges", p.is_finite, [np.float32([1, NAN, INF, -INF])], oracle=np.isfinite, grad=())
_add(
    p.is_finite_p,
    "bf16",
    p.is_finite,
    [np.array([1, NAN, INF], ml_dtypes.bfloat16)],
    oracle=np.isfinite,
    grad=(),
)
_add(p.sign_p, "f32", p.sign, [np.float32([-3, 3, 0, NAN, INF])], oracle=np.sign, grad=())
_add(p.sign_p, "i32", p.sign, [arg((5,), "int32", -2, 2)], oracle=np.sign)
_add(p.sign_p, "u8", p.sign, [np.uint8([0, 1, 200])], oracle=np.sign)
_add(p.sign_p, "c64", p.sign, [np.complex64([3 + 4j, -2, 1j])], oracle=np.sign)
_add(p.sign_p, "c64 zero", p.sign, [np.complex64([0, 5j])], oracle=np.sign, grad=())
_add(p.neg_p, "f32", p.neg, [arg((2, 2))], oracle=np.negative)
_add(p.neg_p, "u8", p.neg, [np.uint8([0, 1, 200])], oracle=np.negative)
_add(p.neg_p, "c64", p.neg, [arg((2,), "complex64")], oracle=np.negative)
_add(
    p.neg_p,
    "i4",
    p.neg,
    [np.array([-8, 7], ml_dtypes.int4)],
    oracle=lambda x: np.array([-8, -7], ml_dtypes.int4),
)
_add(p.abs_p, "f32", p.abs, [np.float32([-1.5, 2, 3])], oracle=np.abs)
_add(p.abs_p, "i32", p.abs, [np.int32([-5, 0, 5])], oracle=np.abs)
_add(p.abs_p, "c64", p.abs, [arg((3,), "complex64")], oracle=np.abs)
_add(p.square_p, "f32", p.square, [arg((3,))], oracle=np.square)
_add(p.square_p, "i32", p.square, [arg((3,), "int32", -9, 9)], oracle=np.square)
_add(p.square_p, "c64", p.square, [arg((3,), "complex64")], oracle=np.square)
for _n in (0, 1, 3, -2):
    _add(
        p.integer_pow_p, f"f32^{_n}", lambda x, n=_n: p.integer_pow(x, n), [arg((3,), low=0.5)], oracle=lambda x, n=_n: x**n
    )  # fmt: skip
_add(p.integer_pow_p, "c64", lambda x: p.integer_pow(x, 3), [arg((2,), "complex64")], oracle=lambda x: x**3)
_add(
    p.integer_pow_p, "i32", lambda x: p.integer_pow(x, 5), [arg((4,), "int32", -5, 5)], oracle=lambda x: x**5
)
_add(p.integer_pow_p, "bf16", lambda x: p.integer_pow(x, 3), [arg((4,), "bfloat16")], oracle=_wide(lambda x: x**3), grad=(), rtol=0.03)  # fmt: skip
_add(p.copy_p, "f32", p.copy_p.bind, [arg((3,))], oracle=lambda x: x)
_add(p.stop_gradient_p, "f32", p.stop_gradient, [arg((3,))], oracle=lambda x: x, grad=())

# ---- complex parts -------------------------------------------------------------------------------

_add(p.real_p, "c64", p.real, [arg((2, 2), "complex64")], oracle=np.real)
_add(p.imag_p, "c64", p.imag, [arg((2, 2), "complex64")], oracle=np.imag)
_add(p.conj_p, "c64", p.conj, [arg((3,), "complex64")], oracle=np.conj)
_add(p.conj_p, "f32", p.conj, [arg((3,))], oracle=lambda x: x + 0j)
_add(p.complex_p, "f32", p.complex, [arg((3,)), arg((3,))], oracle=lambda x, y: x + 1j * y)
_add(p.complex_p, "scalar", p.complex, [arg((3,)), arg()], oracle=lambda x, y: x + 1j * y)
_add(
    p.complex_p, "f64", p.complex, [arg((), "float64"), arg((2,), "float64")], oracle=lambda x, y: x + 1j * y
)

# ---- arithmetic ----------------------------------------------------------------------------------

for _prim, _fun, _oracle in (
    (p.add_p, p.add, np.add), (p.sub_p, p.sub, np.subtract), (p.mul_p, p.mul, np.multiply), (p.add_any_p, p.add_any, np.add),
):  # fmt: skip
    _add(_prim, "f32", _fun, [arg((2, 3)), arg((2, 3))], oracle=_oracle)
    if _prim is not p.add_any_p:
        _add(_prim, "left scalar", _fun, [arg(), arg((2, 3))], oracle=_oracle)
        _add(_prim, "right scalar", _fun, [arg((3,)), arg()], oracle=_oracle)
        _add(_prim, "unit axis", _fun, [arg((2, 1)), arg((1, 3))], oracle=_oracle)
    _add(_prim, "c64", _fun, [arg((3,), "complex64"), arg((3,), "complex64")], oracle=_oracle)
    _add(_prim, "u8", _fun, [np.uint8([250, 3]), np.uint8([10, 5])], oracle=_oracle)
    _add(_prim, "bf16", _fun, [arg((3,), "bfloat16"), arg((3,), "bfloat16")], oracle=_wide(_oracle), grad=())
_add(
    p.mul_p, "out_dtype", lambda x, y: p.mul(x, y, out_dtype=np.float32), [arg((3,), "bfloat16"), arg((), "bfloat16")],
    oracle=_wide(np.multiply), grad=(),
)  # fmt: skip
_add(p.add_p, "i4", p.add, [np.array([7, -8], ml_dtypes.int4), np.array([1, -1], ml_dtypes.int4)],
     oracle=lambda x, y: np.array([-8, 7], ml_dtypes.int4))  # fmt: skip
_add(p.mul_p, "f8", p.mul, [arg((3,), "float8_e4m3fn"), arg((3,), "float8_e4m3fn")], oracle=_wide(np.multiply), grad=(), rtol=0.13)  # fmt: skip
_INT_MIN = -(2**31)
_NUM, _DEN = np.int32([7, -7, 7, -7, 5, _INT_MIN, 0]), np.int32([2, 2, -2, -2, 0, -1, 3])
_add(p.div_p, "f32", p.div, [arg((3,)), arg((3,), low=0.5)], oracle=np.divide)
_add(p.div_p, "scalar", p.div, [arg(), arg((3,), low=0.5)], oracle=np.divide)
_add(p.div_p, "by scalar", p.div, [arg((3,)), arg((), low=0.5)], oracle=np.divide)
_add(p.div_p, "zero", p.div, [np.float32([1, -1, 0]), np.float32([0, 0, 0])], oracle=np.divide, grad=())
_add(p.div_p, "i32", p.div, [_NUM, _DEN], oracle=lambda x, y: np.int32([3, -3, -3, 3, -1, _INT_MIN, 0]))
_add(p.div_p, "u8", p.div, [np.uint8([7, 5]), np.uint8([2, 0])], oracle=lambda x, y: np.uint8([3, 255]))
_add(p.div_p, "c64", p.div, [arg((3,), "complex64"), arg((3,), "complex64", 0.5)], oracle=np.divide)
_add(p.rem_p, "f32", p.rem, [np.float32([5, -5, 5.5]), np.float32([3, 3, -2])], oracle=np.fmod)
_add(p.rem_p, "scalar", p.rem, [np.float32([5, -5, 5.5]), np.float32(2.2)], oracle=np.fmod)
_add(p.rem_p, "i32", p.rem, [_NUM, _DEN], oracle=lambda x, y: np.int32([1, -1, 1, -1, 5, 0, 0]))
_add(p.pow_p, "f32", p.pow, [arg((3,), low=0.3), arg((3,))], oracle=np.power)
_add(p.pow_p, "scalar", p.pow, [arg((), low=0.3), arg((3,))], oracle=np.power)
_add(p.pow_p, "to scalar", p.pow, [arg((3,), low=0.3), arg()], oracle=np.power)
_add(
    p.pow_p,
    "int",
    p.pow,
    [arg((4,), low=0.5), np.int32([3, -2, 0, 1])],
    oracle=lambda x, y: x ** y.astype("f"),
)
_add(p.pow_p, "int scalar", p.pow, [np.float32([-2, 2]), np.int32(3)], oracle=lambda x, y: x**3)
_add(
    p.pow_p,
    "int huge",
    p.pow,
    [np.float32([-1, -1]), np.int32([2**25 + 1, 2**25])],
    oracle=lambda x, y: [-1, 1],
    grad=(),
)
_add(
    p.pow_p,
    "int bf16",
    p.pow,
    [np.array([-1], ml_dtypes.bfloat16), np.int32([257])],
    oracle=lambda x, y: [-1],
    grad=(),
)
_add(p.pow_p, "zero", p.pow, [np.float32([0, 0]), np.float32([0, 2])], oracle=np.power, grad=())
_add(
    p.pow_p,
    "c64 zero",
    p.pow,
    [np.complex64([0, 0, 0]), np.complex64([1 + 1j, 0, 2])],
    oracle=lambda x, y: [0, 1, 0],
    grad=(),
)
_add(p.pow_p, "c64", p.pow, [arg((3,), "complex64", 0.3), arg((3,), "complex64")], oracle=np.power, rtol=1e-4)
_add(p.atan2_p, "f32", p.atan2, [arg((4,)), arg((4,))], oracle=np.arctan2)
_add(p.atan2_p, "scalar", p.atan2, [arg((4,)), arg()], oracle=np.arctan2)
_add(p.atan2_p, "c64", p.atan2, [arg((3,), "complex64", 0.3), arg((3,), "complex64", 0.3)], rtol=1e-4)
_add(
    p.nextafter_p,
    "f32",
    p.nextafter,
    [np.float32([0, 1, 1]), np.float32([1, 0, 2])],
    oracle=np.nextafter,
    grad=(),
)
_add(p.nextafter_p, "bf16", p.nextafter, [np.array([1], ml_dtypes.bfloat16), np.array([2], ml_dtypes.bfloat16)],
     oracle=lambda x, y: np.array([1.0078125]), grad=())  # fmt: skip

# ---- order ---------------------------------------------------------------------------------------

for _prim, _fun, _oracle in ((p.max_p, p.max, np.maximum), (p.min_p, p.min, np.minimum)):
    _add(_prim, "f32", _fun, [arg((4,)), arg((4,))], oracle=_oracle)
    _add(_prim, "scalar", _fun, [arg((4,)), arg()], oracle=_oracle)
    _add(_prim, "nan", _fun, [np.float32([NAN, 1, INF]), np.float32([1, NAN, 2])], oracle=_oracle, grad=())
    _add(
        _prim, "zeros", lambda x, y, f=_fun: p.div(np.ones(3, "f"), f(x, y)), [np.float32([0, -0.0, -0.0]), np.float32([-0.0, 0, -0.0])],
        oracle=lambda x, y, top=_prim is p.max_p: [INF, INF, -INF] if top else [-INF, -INF, -INF], grad=(),
    )  # fmt: skip
    _add(_prim, "u8", _fun, [np.uint8([200, 3]), np.uint8([100, 5])], oracle=_oracle)
    _add(_prim, "bool", _fun, [np.array([True, False]), np.array([False, False])], oracle=_oracle)
    _add(_prim, "c64", _fun, [np.complex64([1 + 2j, 2]), np.complex64([1 + 3j, 1])], oracle=_oracle, grad=())
    _add(_prim, "c64 apart", _fun, [arg((3,), "complex64"), arg((3,), "complex64")], oracle=_oracle)
    _add(_prim, "bf16", _fun, [arg((3,), "bfloat16"), arg((3,), "bfloat16")], oracle=_wide(_oracle), grad=())
_X, _Y = np.float32([1, 2, NAN, 0.0, -1]), np.float32([1, 3, 1, -0.0, -2])
for _prim, _fun, _oracle in (
    (p.eq_p, p.eq, np.equal), (p.ne_p, p.ne, np.not_equal), (p.ge_p, p.ge, np.greater_equal), (p.gt_p, p.gt, np.greater),
    (p.le_p, p.le, np.less_equal), (p.lt_p, p.lt, np.less),
):  # fmt: skip
    _add(_prim, "f32", _fun, [_X, _Y], oracle=_oracle, grad=())
    _add(_prim, "scalar", _fun, [arg((2, 2), "int32"), arg((), "int32")], oracle=_oracle)
    _add(_prim, "u64", _fun, [np.uint64([1, 2**63]), np.uint64([2, 1])], oracle=_oracle)
    _add(_prim, "bool", _fun, [np.array([True, False]), np.array([True, True])], oracle=_oracle)
    _add(_prim, "i4", _fun, [np.array([-8, 7], ml_dtypes.int4), np.array([7, 7], ml_dtypes.int4)],
         oracle=lambda x, y, f=_oracle: f(x.astype(int), y.astype(int)))  # fmt: skip
for _prim, _fun, _oracle in ((p.eq_p, p.eq, np.equal), (p.ne_p, p.ne, np.not_equal)):
    _add(_prim, "c64", _fun, [np.complex64([1 + 2j, 2]), np.complex64([1 + 2j, 2j])], oracle=_oracle, grad=())
_TOTAL = np.float32([-NAN, -INF, -1, -0.0, 0.0, 1, INF, NAN])
_RANK = np.arange(8)
for _prim, _oracle in ((p.eq_to_p, np.equal), (p.le_to_p, np.less_equal), (p.lt_to_p, np.less)):
    for _shift in (0, 1, 5):
        _add(_prim, f"f32 {_shift}", _prim.bind, [_TOTAL, np.roll(_TOTAL, _shift)], grad=(),
             oracle=lambda x, y, f=_oracle, s=_shift: f(_RANK, np.roll(_RANK, s)))  # fmt: skip
    _add(_prim, "bf16", _prim.bind, [_TOTAL[1:].astype(ml_dtypes.bfloat16), np.roll(_TOTAL[1:], 2).astype(ml_dtypes.bfloat16)],
         oracle=lambda x, y, f=_oracle: f(_RANK[1:], np.roll(_RANK[1:], 2)), grad=())  # fmt: skip
    _add(_prim, "i32", _prim.bind, [arg((4,), "int32"), arg((), "int32")], oracle=_oracle)

# ---- bits ----------------------------------------------------------------------------------------

_BITS_X, _BITS_Y = np.int32([5, -7, 0, 2**30]), np.int32([3, 12, -1, 6])
for _prim, _fun, _oracle in (
    (p.and_p, p.bitwise_and, np.bitwise_and), (p.or_p, p.bitwise_or, np.bitwise_or), (p.xor_p, p.bitwise_xor, np.bitwise_xor),
):  # fmt: skip
    _add(_prim, "i32", _fun, [_BITS_X, _BITS_Y], oracle=_oracle)
    _add(_prim, "bool", _fun, [np.array([True, True]), np.array([False, True])], oracle=_oracle)
    _add(_prim, "scalar", _fun, [arg((2, 2), "uint8", 0, 255), arg((), "uint8", 0, 255)], oracle=_oracle)
_add(p.not_p, "i32", p.bitwise_not, [_BITS_X], oracle=np.invert)
_add(p.not_p, "bool", p.bitwise_not, [np.array([True, False])], oracle=np.invert)
_add(
    p.not_p,
    "u4",
    p.bitwise_not,
    [np.array([0, 5], ml_dtypes.uint4)],
    oracle=lambda x: np.array([15, 10], ml_dtypes.uint4),
)
_add(
    p.population_count_p, "i8", p.population_count, [np.int8([-1, 5, 0])], oracle=lambda x: np.int8([8, 2, 0])
)
_add(
    p.population_count_p,
    "u64",
    p.population_count,
    [np.uint64([2**64 - 1, 8])],
    oracle=lambda x: np.uint64([64, 1]),
)
_add(
    p.population_count_p,
    "i4",
    p.population_count,
    [np.array([-1, 5, -8], ml_dtypes.int4)],
    oracle=lambda x: [4, 2, 1],
)
_add(p.clz_p, "i4", p.clz, [np.array([-1, 1, 0], ml_dtypes.int4)], oracle=lambda x: [0, 3, 4])
_add(p.clz_p, "i32", p.clz, [np.int32([-1, 1, 0, 2**20])], oracle=lambda x: np.int32([0, 31, 32, 11]))
_add(p.clz_p, "u8", p.clz, [np.uint8([255, 1, 0])], oracle=lambda x: np.uint8([0, 7, 8]))
_add(p.clz_p, "i64", p.clz, [np.int64([2**62, 0, -1])], oracle=lambda x: np.int64([1, 64, 0]))
_AMOUNT = np.int32([3, 31, 32, -1])
_SHIFTED = np.int32([-5, -5, -5, 7])
_add(
    p.shift_left_p,
    "i32",
    p.shift_left,
    [_SHIFTED, _AMOUNT],
    oracle=lambda x, y: np.int32([-40, _INT_MIN, 0, 0]),
)
_add(p.shift_right_logical_p, "i32", p.shift_right_logical, [_SHIFTED, _AMOUNT],
     oracle=lambda x, y: np.int32([(2**32 - 5) >> 3, 1, 0, 0]))  # fmt: skip
_add(p.shift_right_arithmetic_p, "i32", p.shift_right_arithmetic, [_SHIFTED, _AMOUNT],
     oracle=lambda x, y: np.int32([-1, -1, -1, 0]))  # fmt: skip
_add(p.shift_right_arithmetic_p, "u8", p.shift_right_arithmetic, [np.uint8([0x80, 0x40]), np.uint8([1, 1])],
     oracle=lambda x, y: np.uint8([0xC0, 0x20]))  # fmt: skip
for _prim, _fun in ((p.shift_left_p, p.shift_left), (p.shift_right_logical_p, p.shift_right_logical)):
    _add(_prim, "u8", _fun, [np.uint8([255, 3]), np.uint8(2)],
         oracle=lambda x, y, f=_prim is p.shift_left_p: np.uint8([252, 12]) if f else np.uint8([63, 0]))  # fmt: skip
_add(
    p.mulhi_p,
    "i32",
    p.mulhi,
    [np.int32([2**30, -(2**30), 7]), np.int32([8, 12, 9])],
    oracle=lambda x, y: np.int32([2, -3, 0]),
)
_add(p.mulhi_p, "u32", p.mulhi, [np.uint32([2**32 - 1, 5]), np.uint32([2**32 - 1, 2**31])],
     oracle=lambda x, y: np.uint32([2**32 - 2, 2]))  # fmt: skip
_add(p.mulhi_p, "i64", p.mulhi, [np.int64([-(2**62), 2**62 + 12345]), np.int64([12, -(2**40) - 77])],
     oracle=lambda x, y: np.int64([int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]))  # fmt: skip
_add(p.mulhi_p, "u64", p.mulhi, [np.uint64([2**64 - 1, 2**63 + 99]), np.uint64([2**64 - 1, 2**50 + 3])],
     oracle=lambda x, y: np.uint64([int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]))  # fmt: skip
_add(
    p.mulhi_p,
    "i8",
    p.mulhi,
    [np.int8([-128, 100]), np.int8([127, 100])],
    oracle=lambda x, y: np.int8([-64, 39]),
)

# ---- choice --------------------------------------------------------------------------------------

_add(
    p.clamp_p,
    "scalars",
    p.clamp,
    [np.float32(-0.5), arg((5,)), np.float32(0.7)],
    oracle=lambda a, x, b: np.clip(x, a, b),
)
_add(p.clamp_p, "arrays", p.clamp, [arg((4,), low=-2, high=-0.5), arg((4,)), arg((4,), low=0.5, high=1)],
     oracle=lambda a, x, b: np.clip(x, a, b))  # fmt: skip
_add(
    p.clamp_p,
    "crossed",
    p.clamp,
    [np.float32(2), np.float32([0, NAN]), np.float32(1)],
    oracle=lambda a, x, b: [1, NAN],
    grad=(),
)
_add(
    p.clamp_p,
    "u8",
    p.clamp,
    [np.uint8(3), arg((5,), "uint8", 0, 9), np.uint8(5)],
    oracle=lambda a, x, b: np.clip(x, a, b),
)
_add(
    p.select_n_p,
    "bool",
    p.select_n,
    [arg((2, 3), "bool"), arg((2, 3)), arg((2, 3))],
    oracle=lambda w, x, y: np.where(w, y, x),
)
_add(p.select_n_p, "scalar", p.select_n, [np.array(True), arg((2, 3)), arg((2, 3))], oracle=lambda w, x, y: y)
_add(p.select_n_p, "rank 0", p.select_n, [np.array(True), arg(), arg()], oracle=lambda w, x, y: y)
_add(p.select_n_p, "int", p.select_n, [np.int32([-1, 0, 1, 2, 5])] + [arg((5,)) for _ in range(3)],
     oracle=lambda w, *xs: np.choose(np.clip(w, 0, 2), xs))  # fmt: skip
_add(p.select_n_p, "c64", p.select_n, [arg((3,), "bool"), arg((3,), "complex64"), arg((3,), "complex64")],
     oracle=lambda w, x, y: np.where(w, y, x))  # fmt: skip
_add(
    p.select_n_p, "one", p.select_n, [np.array(False), arg((3,), "bfloat16")], oracle=lambda w, x: x, grad=()
)
