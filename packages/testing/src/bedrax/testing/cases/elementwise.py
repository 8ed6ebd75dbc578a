"""Records of the elementwise primitives."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from bedrax.lax.primitives import elementwise as p
from bedrax.testing.records import OpCase, arg

INTS = ("int32", "uint8", "int4", "uint64")
NAN, INF = np.nan, np.inf

CASES: list[OpCase] = []


_FUNCTIONS = {p.and_p: p.bitwise_and, p.or_p: p.bitwise_or, p.xor_p: p.bitwise_xor, p.not_p: p.bitwise_not}


def _add(prim, name, args, oracle=None, fun=None, **kw):
    """A record; `fun`: by default the function of lax that the primitive is named after, else its `bind`."""
    fun = fun or _FUNCTIONS.get(prim) or getattr(p, prim.name, prim.bind)
    CASES.append(OpCase(prim, name, fun, tuple(args), oracle, **kw))


def _wide(oracle):
    """An oracle for narrow floats: computed in float32."""
    return lambda *xs: oracle(*[x.astype(np.float32) for x in xs])


# ---- functions of one float ----------------------------------------------------------------------

# primitive: (NumPy oracle, range, complex too)
_SMOOTH = {
    p.exp_p: (np.exp, (-2, 2), True), p.exp2_p: (np.exp2, (-2, 2), True), p.expm1_p: (np.expm1, (-2, 2), True),
    p.log_p: (np.log, (0.1, 3), True), p.log2_p: (np.log2, (0.1, 3), True), p.log1p_p: (np.log1p, (-0.7, 2), True), p.sqrt_p: (np.sqrt, (0.1, 4), True),
    p.rsqrt_p: (lambda x: 1 / np.sqrt(x), (0.1, 4), True), p.cbrt_p: (np.cbrt, (0.1, 4), False),
    p.sin_p: (np.sin, (-4, 4), True), p.cos_p: (np.cos, (-4, 4), True), p.tan_p: (np.tan, (-1.2, 1.2), True),
    p.tanh_p: (np.tanh, (-2, 2), True), p.sinh_p: (np.sinh, (-2, 2), True), p.cosh_p: (np.cosh, (-2, 2), True),
    p.asin_p: (np.arcsin, (-0.8, 0.8), True), p.acos_p: (np.arccos, (-0.8, 0.8), True),
    p.atan_p: (np.arctan, (-2, 2), True), p.asinh_p: (np.arcsinh, (-2, 2), True),
    p.acosh_p: (np.arccosh, (1.3, 4), True), p.atanh_p: (np.arctanh, (-0.8, 0.8), True),
    p.logistic_p: (lambda x: 1 / (1 + np.exp(-x)), (-3, 3), True),
}  # fmt: skip
for _prim, (_oracle, (_low, _high), _complex) in _SMOOTH.items():
    _add(_prim, "f32", [arg((2, 3), "float32", _low, _high)], _oracle)
    _add(_prim, "bf16", [arg((3,), "bfloat16", _low, _high)], _wide(_oracle), grad=())
    _add(_prim, "f16", [arg((3,), "float16", _low, _high)], _wide(_oracle), grad=())
    _add(_prim, "f64", [arg((), "float64", _low, _high)], _oracle, grad=())
    if _complex:
        _oracle = (lambda x: np.exp(x * np.log(2))) if _prim is p.exp2_p else _oracle
        _add(_prim, "c64", [arg((3,), "complex64", _low, min(_high, 2))], _oracle, rtol=1e-4)

_add(p.exp_p, "accuracy", [arg((3,))], np.exp, fun=lambda x: p.exp(x, accuracy=p.AccuracyMode.HIGHEST))
_add(p.tanh_p, "special", [np.float32([INF, -INF, NAN, 0.0, 1e-30])], np.tanh, grad=())
_add(p.logistic_p, "far", [np.float32([-200, 200, 0])], lambda x: np.float32([0, 1, 0.5]), grad=())

# ---- steps and signs -----------------------------------------------------------------------------

_EDGES = np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, NAN, INF, -0.0])


def _half_away(x):
    return np.float32([-3, -2, -1, 1, 2, 3, 0, NAN, INF, -0.0])


_add(p.floor_p, "edges", [_EDGES], np.floor, grad=())
_add(p.floor_p, "f32", [arg((4,), low=-3, high=3)], np.floor, second=False)
_add(p.floor_p, "bf16", [arg((4,), "bfloat16", -3, 3)], _wide(np.floor), grad=())
_add(p.ceil_p, "edges", [_EDGES], np.ceil, grad=())
_add(p.round_p, "away", [_EDGES], _half_away, grad=())
_add(p.round_p, "even", [_EDGES], np.round, fun=lambda x: p.round(x, p.RoundingMethod.TO_NEAREST_EVEN), grad=())
_add(p.is_finite_p, "edges", [np.float32([1, NAN, INF, -INF])], np.isfinite, grad=())
_add(p.is_finite_p, "bf16", [np.array([1, NAN, INF], ml_dtypes.bfloat16)], np.isfinite, grad=())
_add(p.sign_p, "f32", [np.float32([-3, 3, 0, NAN, INF])], np.sign, grad=())
_add(p.sign_p, "i32", [arg((5,), "int32", -2, 2)], np.sign)
_add(p.sign_p, "u8", [np.uint8([0, 1, 200])], np.sign)
_add(p.sign_p, "c64", [np.complex64([3 + 4j, -2, 1j])], np.sign)
_add(p.sign_p, "c64 zero", [np.complex64([0, 5j])], np.sign, grad=())
_add(p.neg_p, "f32", [arg((2, 2))], np.negative)
_add(p.neg_p, "u8", [np.uint8([0, 1, 200])], np.negative)
_add(p.neg_p, "c64", [arg((2,), "complex64")], np.negative)
_add(p.neg_p, "i4", [np.array([-8, 7], ml_dtypes.int4)], lambda x: np.array([-8, -7], ml_dtypes.int4))
_add(p.abs_p, "f32", [np.float32([-1.5, 2, 3])], np.abs)
_add(p.abs_p, "i32", [np.int32([-5, 0, 5])], np.abs)
_add(p.abs_p, "c64", [arg((3,), "complex64")], np.abs)
_add(p.square_p, "f32", [arg((3,))], np.square)
_add(p.square_p, "i32", [arg((3,), "int32", -9, 9)], np.square)
_SMALL = np.complex64([1e-20 + 1e-20j, 2 + 1e-20j, 1e-20 - 2j, 1e-20 - 1e-20j])
for _prim, _oracle in {p.sin_p: np.sin, p.cos_p: np.cos, p.sinh_p: np.sinh, p.cosh_p: np.cosh}.items():
    _add(_prim, "c64 small", [_SMALL], _oracle, grad=(), rtol=1e-5, atol=0)
_add(
    p.exp2_p,
    "c64 infinite",
    [np.complex64([complex(INF, 0), complex(-INF, 0)])],
    lambda x: [complex(INF, 0), 0],
    grad=(),
)
_add(p.log2_p, "accuracy", [arg((3,), low=0.1)], np.log2, fun=lambda x: p.log2(x, accuracy=p.AccuracyMode.HIGHEST))
_add(p.log2_p, "edges", [np.float32([0, -1, INF, NAN, 1])], np.log2, grad=())
_add(p.log2_p, "c64 zero", [np.complex64([0])], lambda x: [complex(-INF, 0)], grad=())
_add(p.one_minus_square_p, "f32", [arg((3,))], lambda x: 1 - x.astype(np.float64) ** 2)
_add(
    p.one_minus_square_p,
    "near one",
    [np.float32([1 - 2**-24, -1 - 2**-23])],
    lambda x: 1 - x.astype(np.float64) ** 2,
    rtol=1e-7,
    atol=0,
    exact="the differences 1 - x and 1 + x are exact",
)
_add(p.one_minus_square_p, "i32", [arg((3,), "int32", -9, 9)], lambda x: 1 - x * x)
_add(p.one_minus_square_p, "u8", [np.uint8([3, 0])], lambda x: np.uint8([248, 1]))
_add(p.one_minus_square_p, "c64", [arg((3,), "complex64")], lambda x: 1 - x * x)
_add(p.one_minus_square_p, "bf16", [arg((3,), "bfloat16")], _wide(lambda x: 1 - x * x), grad=(), atol=0.05)


def _horner(x, *coefficients):
    return np.polynomial.polynomial.polyval(x, np.stack(np.broadcast_arrays(*coefficients)), tensor=False)


_polynomial = lambda x, *coefficients: p.polynomial_p.bind(x, *coefficients)
_looped = lambda x, *coefficients: p.polynomial_p.bind(x, *coefficients, unroll=2)
_SCALARS = [arg() for _ in range(4)]
_add(p.polynomial_p, "scalars", [arg((2, 3)), *_SCALARS], _horner, fun=_polynomial)
_add(p.polynomial_p, "at a scalar", [arg(), *[arg((3,)) for _ in range(3)]], _horner, fun=_polynomial)
_add(
    p.polynomial_p,
    "mixed",
    [arg((3,)), arg((3,)), arg(), arg((3,))],
    lambda x, a, b, c: a + x * (b + x * c),
    fun=_polynomial,
)
_add(p.polynomial_p, "all scalars", [arg(), *_SCALARS], _horner, fun=_polynomial)
_add(p.polynomial_p, "constant", [arg((3,)), arg()], lambda x, a: a + 0 * x, fun=_polynomial)
_add(
    p.polynomial_p,
    "loop",
    [arg((3,), low=-1, high=1), *[arg() for _ in range(11)]],
    _horner,
    fun=_polynomial,
    second=False,
)
_add(
    p.polynomial_p,
    "loop of arrays",
    [arg((2, 3)), arg((2, 3)), arg(), arg((2, 3)), arg()],
    lambda x, a, b, c, d: a + x * (b + x * (c + x * d)),
    fun=_looped,
    second=False,
)
_add(
    p.polynomial_p,
    "c64",
    [arg((3,), "complex64"), *[arg((), "complex64") for _ in range(3)]],
    _horner,
    fun=_polynomial,
    rtol=1e-4,
)
_add(
    p.polynomial_p,
    "i32",
    [arg((3,), "int32", -5, 5), *[arg((), "int32", -5, 5) for _ in range(3)]],
    _horner,
    fun=_polynomial,
)
_add(
    p.polynomial_p,
    "bf16",
    [arg((3,), "bfloat16", -1, 1), *[arg((), "bfloat16") for _ in range(3)]],
    lambda x, *c: _wide(_horner)(x, *c),
    fun=_polynomial,
    grad=(),
    atol=0.05,
)
_add(p.square_p, "c64", [arg((3,), "complex64")], np.square)
for _n in (0, 1, 3, -2):
    _add(
        p.integer_pow_p,
        f"f32^{_n}",
        [arg((3,), low=0.5)],
        lambda x, n=_n: x**n,
        fun=lambda x, n=_n: p.integer_pow(x, n),
    )
_add(p.integer_pow_p, "c64", [arg((2,), "complex64")], lambda x: x**3, fun=lambda x: p.integer_pow(x, 3))
_add(p.integer_pow_p, "i32", [arg((4,), "int32", -5, 5)], lambda x: x**5, fun=lambda x: p.integer_pow(x, 5))
_add(
    p.integer_pow_p,
    "bf16",
    [arg((4,), "bfloat16")],
    _wide(lambda x: x**3),
    fun=lambda x: p.integer_pow(x, 3),
    grad=(),
    rtol=0.03,
)
_add(p.copy_p, "f32", [arg((3,))], lambda x: x)
_add(p.stop_gradient_p, "f32", [arg((3,))], lambda x: x, grad=())

# ---- complex parts -------------------------------------------------------------------------------

_add(p.real_p, "c64", [arg((2, 2), "complex64")], np.real)
_add(p.imag_p, "c64", [arg((2, 2), "complex64")], np.imag)
_add(p.conj_p, "c64", [arg((3,), "complex64")], np.conj)
_add(p.conj_p, "f32", [arg((3,))], lambda x: x + 0j)
_add(p.complex_p, "f32", [arg((3,)), arg((3,))], lambda x, y: x + 1j * y)
_add(p.complex_p, "scalar", [arg((3,)), arg()], lambda x, y: x + 1j * y)
_add(p.complex_p, "f64", [arg((), "float64"), arg((2,), "float64")], lambda x, y: x + 1j * y)

# ---- arithmetic ----------------------------------------------------------------------------------

for _prim, _oracle in ((p.add_p, np.add), (p.sub_p, np.subtract), (p.mul_p, np.multiply), (p.add_any_p, np.add)):
    _add(_prim, "f32", [arg((2, 3)), arg((2, 3))], _oracle)
    if _prim is not p.add_any_p:
        _add(_prim, "left scalar", [arg(), arg((2, 3))], _oracle)
        _add(_prim, "right scalar", [arg((3,)), arg()], _oracle)
        _add(_prim, "unit axis", [arg((2, 1)), arg((1, 3))], _oracle)
    _add(_prim, "c64", [arg((3,), "complex64"), arg((3,), "complex64")], _oracle)
    _add(_prim, "u8", [np.uint8([250, 3]), np.uint8([10, 5])], _oracle)
    _add(_prim, "bf16", [arg((3,), "bfloat16"), arg((3,), "bfloat16")], _wide(_oracle), grad=())
_add(
    p.mul_p,
    "out_dtype",
    [arg((3,), "bfloat16"), arg((), "bfloat16")],
    _wide(np.multiply),
    fun=lambda x, y: p.mul(x, y, out_dtype=np.float32),
    grad=(),
)
_add(
    p.add_p,
    "i4",
    [np.array([7, -8], ml_dtypes.int4), np.array([1, -1], ml_dtypes.int4)],
    lambda x, y: np.array([-8, 7], ml_dtypes.int4),
)
_add(p.mul_p, "f8", [arg((3,), "float8_e4m3fn"), arg((3,), "float8_e4m3fn")], _wide(np.multiply), grad=(), rtol=0.13)
_INT_MIN = -(2**31)
_NUM, _DEN = np.int32([7, -7, 7, -7, 5, _INT_MIN, 0]), np.int32([2, 2, -2, -2, 0, -1, 3])
_add(p.div_p, "f32", [arg((3,)), arg((3,), low=0.5)], np.divide)
_add(p.div_p, "scalar", [arg(), arg((3,), low=0.5)], np.divide)
_add(p.div_p, "by scalar", [arg((3,)), arg((), low=0.5)], np.divide)
_add(p.div_p, "zero", [np.float32([1, -1, 0]), np.float32([0, 0, 0])], np.divide, grad=())
_add(p.div_p, "i32", [_NUM, _DEN], lambda x, y: np.int32([3, -3, -3, 3, -1, _INT_MIN, 0]))
_add(p.div_p, "u8", [np.uint8([7, 5]), np.uint8([2, 0])], lambda x, y: np.uint8([3, 255]))
_add(p.div_p, "c64", [arg((3,), "complex64"), arg((3,), "complex64", 0.5)], np.divide)
_add(p.rem_p, "f32", [np.float32([5, -5, 5.5]), np.float32([3, 3, -2])], np.fmod)
_add(p.rem_p, "scalar", [np.float32([5, -5, 5.5]), np.float32(2.2)], np.fmod)
_add(p.rem_p, "i32", [_NUM, _DEN], lambda x, y: np.int32([1, -1, 1, -1, 5, 0, 0]))
_add(p.pow_p, "f32", [arg((3,), low=0.3), arg((3,))], np.power)
_add(p.pow_p, "scalar", [arg((), low=0.3), arg((3,))], np.power)
_add(p.pow_p, "to scalar", [arg((3,), low=0.3), arg()], np.power)
_add(p.pow_p, "int", [arg((4,), low=0.5), np.int32([3, -2, 0, 1])], lambda x, y: x ** y.astype("f"))
_add(p.pow_p, "int scalar", [np.float32([-2, 2]), np.int32(3)], lambda x, y: x**3)
_add(
    p.pow_p,
    "int huge",
    [np.float32([-1, -1]), np.int32([2**25 + 1, 2**25])],
    lambda x, y: [-1, 1],
    grad=(),
    exact="a power of -1",
)
_add(p.pow_p, "int bf16", [np.array([-1], ml_dtypes.bfloat16), np.int32([257])], lambda x, y: [-1], grad=())
_add(p.pow_p, "zero", [np.float32([0, 0]), np.float32([0, 2])], np.power, grad=())
_add(p.pow_p, "c64 zero", [np.complex64([0, 0, 0]), np.complex64([1 + 1j, 0, 2])], lambda x, y: [0, 1, 0], grad=())
_add(p.pow_p, "c64", [arg((3,), "complex64", 0.3), arg((3,), "complex64")], np.power, rtol=1e-4)
_add(p.atan2_p, "f32", [arg((4,)), arg((4,))], np.arctan2)
_add(p.atan2_p, "scalar", [arg((4,)), arg()], np.arctan2)
_add(p.atan2_p, "c64", [arg((3,), "complex64", 0.3), arg((3,), "complex64", 0.3)], rtol=1e-4)
_add(p.nextafter_p, "f32", [np.float32([0, 1, 1]), np.float32([1, 0, 2])], np.nextafter, grad=())
_add(
    p.nextafter_p,
    "bf16",
    [np.array([1], ml_dtypes.bfloat16), np.array([2], ml_dtypes.bfloat16)],
    lambda x, y: np.array([1.0078125]),
    grad=(),
)

# ---- order ---------------------------------------------------------------------------------------

for _prim, _oracle in ((p.max_p, np.maximum), (p.min_p, np.minimum)):
    _add(_prim, "f32", [arg((4,)), arg((4,))], _oracle)
    _add(_prim, "scalar", [arg((4,)), arg()], _oracle)
    _add(_prim, "nan", [np.float32([NAN, 1, INF]), np.float32([1, NAN, 2])], _oracle, grad=())
    _add(
        _prim,
        "zeros",
        [np.float32([0, -0.0, -0.0]), np.float32([-0.0, 0, -0.0])],
        lambda x, y, top=_prim is p.max_p: [INF, INF, -INF] if top else [-INF, -INF, -INF],
        fun=lambda x, y, f=_prim.bind: p.div(np.ones(3, "f"), f(x, y)),
        grad=(),
    )
    _add(_prim, "u8", [np.uint8([200, 3]), np.uint8([100, 5])], _oracle)
    _add(_prim, "bool", [np.array([True, False]), np.array([False, False])], _oracle)
    _add(_prim, "c64", [np.complex64([1 + 2j, 2]), np.complex64([1 + 3j, 1])], _oracle, grad=())
    _add(_prim, "c64 apart", [arg((3,), "complex64"), arg((3,), "complex64")], _oracle)
    _add(_prim, "bf16", [arg((3,), "bfloat16"), arg((3,), "bfloat16")], _wide(_oracle), grad=())
_X, _Y = np.float32([1, 2, NAN, 0.0, -1]), np.float32([1, 3, 1, -0.0, -2])
for _prim, _oracle in (
    (p.eq_p, np.equal),
    (p.ne_p, np.not_equal),
    (p.ge_p, np.greater_equal),
    (p.gt_p, np.greater),
    (p.le_p, np.less_equal),
    (p.lt_p, np.less),
):
    _add(_prim, "f32", [_X, _Y], _oracle, grad=())
    _add(_prim, "scalar", [arg((2, 2), "int32"), arg((), "int32")], _oracle)
    _add(_prim, "u64", [np.uint64([1, 2**63]), np.uint64([2, 1])], _oracle)
    _add(_prim, "bool", [np.array([True, False]), np.array([True, True])], _oracle)
    _add(
        _prim,
        "i4",
        [np.array([-8, 7], ml_dtypes.int4), np.array([7, 7], ml_dtypes.int4)],
        lambda x, y, f=_oracle: f(x.astype(int), y.astype(int)),
    )
for _prim, _oracle in ((p.eq_p, np.equal), (p.ne_p, np.not_equal)):
    _add(_prim, "c64", [np.complex64([1 + 2j, 2]), np.complex64([1 + 2j, 2j])], _oracle, grad=())
_TOTAL = np.float32([-NAN, -INF, -1, -0.0, 0.0, 1, INF, NAN])
_RANK = np.arange(8)
for _prim, _oracle in ((p.eq_to_p, np.equal), (p.le_to_p, np.less_equal), (p.lt_to_p, np.less)):
    for _shift in (0, 1, 5):
        _add(
            _prim,
            f"f32 {_shift}",
            [_TOTAL, np.roll(_TOTAL, _shift)],
            lambda x, y, f=_oracle, s=_shift: f(_RANK, np.roll(_RANK, s)),
            grad=(),
        )
    _add(
        _prim,
        "bf16",
        [_TOTAL[1:].astype(ml_dtypes.bfloat16), np.roll(_TOTAL[1:], 2).astype(ml_dtypes.bfloat16)],
        lambda x, y, f=_oracle: f(_RANK[1:], np.roll(_RANK[1:], 2)),
        grad=(),
    )
    _add(_prim, "i32", [arg((4,), "int32"), arg((), "int32")], _oracle)

# ---- bits ----------------------------------------------------------------------------------------

_BITS_X, _BITS_Y = np.int32([5, -7, 0, 2**30]), np.int32([3, 12, -1, 6])
for _prim, _oracle in ((p.and_p, np.bitwise_and), (p.or_p, np.bitwise_or), (p.xor_p, np.bitwise_xor)):
    _add(_prim, "i32", [_BITS_X, _BITS_Y], _oracle)
    _add(_prim, "bool", [np.array([True, True]), np.array([False, True])], _oracle)
    _add(_prim, "scalar", [arg((2, 2), "uint8", 0, 255), arg((), "uint8", 0, 255)], _oracle)
_add(p.not_p, "i32", [_BITS_X], np.invert)
_add(p.not_p, "bool", [np.array([True, False])], np.invert)
_add(p.not_p, "u4", [np.array([0, 5], ml_dtypes.uint4)], lambda x: np.array([15, 10], ml_dtypes.uint4))
_add(p.population_count_p, "i8", [np.int8([-1, 5, 0])], lambda x: np.int8([8, 2, 0]))
_add(p.population_count_p, "u64", [np.uint64([2**64 - 1, 8])], lambda x: np.uint64([64, 1]))
_add(p.population_count_p, "i4", [np.array([-1, 5, -8], ml_dtypes.int4)], lambda x: [4, 2, 1])
_add(p.clz_p, "i4", [np.array([-1, 1, 0], ml_dtypes.int4)], lambda x: [0, 3, 4])
_add(p.clz_p, "i32", [np.int32([-1, 1, 0, 2**20])], lambda x: np.int32([0, 31, 32, 11]))
_add(p.clz_p, "u8", [np.uint8([255, 1, 0])], lambda x: np.uint8([0, 7, 8]))
_add(p.clz_p, "i64", [np.int64([2**62, 0, -1])], lambda x: np.int64([1, 64, 0]))
_AMOUNT = np.int32([3, 31, 32, -1])
_SHIFTED = np.int32([-5, -5, -5, 7])
_add(p.shift_left_p, "i32", [_SHIFTED, _AMOUNT], lambda x, y: np.int32([-40, _INT_MIN, 0, 0]))
_add(p.shift_right_logical_p, "i32", [_SHIFTED, _AMOUNT], lambda x, y: np.int32([(2**32 - 5) >> 3, 1, 0, 0]))
_add(p.shift_right_arithmetic_p, "i32", [_SHIFTED, _AMOUNT], lambda x, y: np.int32([-1, -1, -1, 0]))
_add(p.shift_right_arithmetic_p, "u8", [np.uint8([0x80, 0x40]), np.uint8([1, 1])], lambda x, y: np.uint8([0xC0, 0x20]))
for _prim in (p.shift_left_p, p.shift_right_logical_p):
    _add(
        _prim,
        "u8",
        [np.uint8([255, 3]), np.uint8(2)],
        lambda x, y, f=_prim is p.shift_left_p: np.uint8([252, 12]) if f else np.uint8([63, 0]),
    )
_add(p.mulhi_p, "i32", [np.int32([2**30, -(2**30), 7]), np.int32([8, 12, 9])], lambda x, y: np.int32([2, -3, 0]))
_add(
    p.mulhi_p, "u32", [np.uint32([2**32 - 1, 5]), np.uint32([2**32 - 1, 2**31])], lambda x, y: np.uint32([2**32 - 2, 2])
)
_add(
    p.mulhi_p,
    "i64",
    [np.int64([-(2**62), 2**62 + 12345]), np.int64([12, -(2**40) - 77])],
    lambda x, y: np.int64([int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]),
)
_add(
    p.mulhi_p,
    "u64",
    [np.uint64([2**64 - 1, 2**63 + 99]), np.uint64([2**64 - 1, 2**50 + 3])],
    lambda x, y: np.uint64([int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]),
)
_add(p.mulhi_p, "i8", [np.int8([-128, 100]), np.int8([127, 100])], lambda x, y: np.int8([-64, 39]))

# ---- choice --------------------------------------------------------------------------------------

_add(p.clamp_p, "scalars", [np.float32(-0.5), arg((5,)), np.float32(0.7)], lambda a, x, b: np.clip(x, a, b))
_add(
    p.clamp_p,
    "arrays",
    [arg((4,), low=-2, high=-0.5), arg((4,)), arg((4,), low=0.5, high=1)],
    lambda a, x, b: np.clip(x, a, b),
)
_add(p.clamp_p, "crossed", [np.float32(2), np.float32([0, NAN]), np.float32(1)], lambda a, x, b: [1, NAN], grad=())
_add(p.clamp_p, "u8", [np.uint8(3), arg((5,), "uint8", 0, 9), np.uint8(5)], lambda a, x, b: np.clip(x, a, b))
_add(p.select_n_p, "bool", [arg((2, 3), "bool"), arg((2, 3)), arg((2, 3))], lambda w, x, y: np.where(w, y, x))
_add(p.select_n_p, "scalar", [np.array(True), arg((2, 3)), arg((2, 3))], lambda w, x, y: y)
_add(p.select_n_p, "rank 0", [np.array(True), arg(), arg()], lambda w, x, y: y)
_add(
    p.select_n_p,
    "int",
    [np.int32([-1, 0, 1, 2, 5])] + [arg((5,)) for _ in range(3)],
    lambda w, *xs: np.choose(np.clip(w, 0, 2), xs),
)
_add(
    p.select_n_p,
    "c64",
    [arg((3,), "bool"), arg((3,), "complex64"), arg((3,), "complex64")],
    lambda w, x, y: np.where(w, y, x),
)
_add(p.select_n_p, "one", [np.array(False), arg((3,), "bfloat16")], lambda w, x: x, grad=())
