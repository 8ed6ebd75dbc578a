"""Elementwise primitives: arithmetic, comparison, bits, complex parts, transcendental functions.

Operands of an n-ary primitive have equal shapes or rank 0, and equal dtypes. The public
functions also take axes of length 1 against longer ones; they insert the broadcast
before the primitive. `bedrax.numpy` promotes dtypes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.defining import named
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, T
from bedrax.lax.elementwise_kinds import (
    ANY,
    BITS,
    COMPARABLE,
    COMPLEX,
    COMPLEX_OF,
    COMPLEX_PART,
    CONJUGABLE,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    ORDERED,
    REAL,
    REAL_OF,
    SIGNED,
    accepted,
    dtype_mismatch,
    dtype_refused,
    joined,
    nary,
    result_shape,
    unary,
)
from bedrax.lax.elementwise_kinds import scalar_like as scalar_like
from bedrax.lax.operands import bind_nary, bind_pair
from bedrax.pytree import tree_map

pure_shapes.add(__name__)

__all__ = [
    "AccuracyMode",
    "RoundingMethod",
    "Tolerance",
    "abs",
    "abs_p",
    "acos",
    "acos_p",
    "acosh",
    "acosh_p",
    "add",
    "add_any",
    "add_any_p",
    "add_jaxvals_p",
    "add_p",
    "and_p",
    "asin",
    "asin_p",
    "asinh",
    "asinh_p",
    "atan",
    "atan2",
    "atan2_p",
    "atan_p",
    "atanh",
    "atanh_p",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "cbrt_p",
    "ceil",
    "ceil_p",
    "clamp",
    "clamp_p",
    "clz",
    "clz_p",
    "complex",
    "complex_p",
    "conj",
    "conj_p",
    "copy_p",
    "cos",
    "cos_p",
    "cosh",
    "cosh_p",
    "div",
    "div_p",
    "eq",
    "eq_p",
    "eq_to_p",
    "exp",
    "exp2",
    "exp2_p",
    "exp_p",
    "expm1",
    "expm1_p",
    "floor",
    "floor_p",
    "ge",
    "ge_p",
    "gt",
    "gt_p",
    "imag",
    "imag_p",
    "integer_pow",
    "integer_pow_p",
    "is_finite",
    "is_finite_p",
    "le",
    "le_p",
    "le_to_p",
    "log",
    "log1p",
    "log1p_p",
    "log2",
    "log2_p",
    "log_p",
    "logistic",
    "logistic_p",
    "lt",
    "lt_p",
    "lt_to_p",
    "max",
    "max_p",
    "min",
    "min_p",
    "mul",
    "mul_p",
    "mulhi",
    "mulhi_p",
    "ne",
    "ne_p",
    "neg",
    "neg_p",
    "nextafter",
    "nextafter_p",
    "not_p",
    "one_minus_square",
    "one_minus_square_p",
    "or_p",
    "polynomial_p",
    "population_count",
    "population_count_p",
    "pow",
    "pow_p",
    "real",
    "real_p",
    "reciprocal",
    "rem",
    "rem_p",
    "round",
    "round_p",
    "rsqrt",
    "rsqrt_p",
    "select",
    "select_n",
    "select_n_p",
    "shift_left",
    "shift_left_p",
    "shift_right_arithmetic",
    "shift_right_arithmetic_p",
    "shift_right_logical",
    "shift_right_logical_p",
    "sign",
    "sign_p",
    "sin",
    "sin_p",
    "sinh",
    "sinh_p",
    "sqrt",
    "sqrt_p",
    "square",
    "square_p",
    "stop_gradient",
    "stop_gradient_p",
    "sub",
    "sub_p",
    "tan",
    "tan_p",
    "tanh",
    "tanh_p",
    "xor_p",
]

_BOOL = np.dtype(bool)


# ---- options -------------------------------------------------------------------------------------


class RoundingMethod(enum.IntEnum):
    """Rounding of values halfway between two integers, for `round`.

    Examples:

      >>> lax.round(jnp.array([0.5, 1.5, 2.5]), lax.RoundingMethod.AWAY_FROM_ZERO)
      Array([1., 2., 3.], dtype=float32)
      >>> lax.round(jnp.array([0.5, 1.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
      Array([0., 2., 2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """Accuracy of the implementation of a transcendental function.

    Examples:

      >>> lax.exp(1., accuracy=lax.AccuracyMode.DEFAULT)
      Array(2.7182817, dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Upper bounds for the error of a transcendental function.

    Args:
      atol: absolute error, not negative.
      rtol: relative error, not negative.
      ulps: error in units of the last place, not negative.

    Raises:
      ValueError: a bound is negative.

    Examples:

      >>> lax.Tolerance(rtol=1e-3).rtol
      0.001
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if self.atol < 0 or self.rtol < 0 or self.ulps < 0:
            raise ValueError(f"Tolerance: bounds are not negative, got {self}")


# ---- primitives with their functions -------------------------------------------------------------

_REFUSED = "another dtype, or dtypes or shapes that differ; the functions of `jax.numpy` promote and broadcast."
_ACCURACY = "accuracy: the required accuracy, a `Tolerance` or an `AccuracyMode`; None: the compiler chooses."
_PAIR = "x, y: arrays of one dtype, {0}; scalars, or of equal rank with axes that match or have length 1."


def _made(
    prim: Primitive, function: Callable, name: str, doc: str, example: str, categories: tuple, *given: str
) -> tuple:
    listed = "\n  ".join(given).format(" or ".join(categories))
    text = f"{doc}\n\nArgs:\n  {listed}\n\nRaises:\n  TypeError: {_REFUSED}\n"
    return prim, named(function, name or prim.name, f"{__package__}.{prim.family}", text, example)


def of_one(
    prim_name: str,
    categories: tuple[Any, ...],
    doc: str,
    *,
    name: str = "",
    result: Callable[..., Any] | None = None,
    accurate: bool = False,
    family: str = "elementwise",
    example: str = "",
) -> tuple[Primitive, Any]:
    """A primitive of one operand (see `unary`), and its function: ``(x)``, or ``(x, *, accuracy)``."""
    prim = unary(prim_name, categories, result, family)
    bind = prim.bind

    def plain(x: ArrayLike) -> Array:
        return bind(x)

    def with_accuracy(x: ArrayLike, *, accuracy: Any = None) -> Array:
        if accuracy is None or accuracy is AccuracyMode.DEFAULT:
            return bind(x)
        return bind(x, accuracy=accuracy)

    function, more = (with_accuracy, [_ACCURACY]) if accurate else (plain, [])
    return _made(prim, function, name, doc, example, categories, "x: array, {0}.", *more)


def of_two(
    prim_name: str,
    categories: tuple[Any, ...],
    doc: str,
    *,
    name: str = "",
    result: Callable[..., Any] | None = None,
    example: str = "",
) -> tuple[Primitive, Any]:
    """A primitive of two operands (see `nary`), and its function ``(x, y)``."""
    prim = nary(prim_name, categories, result=result)

    def function(x: ArrayLike, y: ArrayLike) -> Array:
        return bind_pair(prim, x, y)

    return _made(prim, function, name, doc, example, categories, _PAIR)


# ---- primitives by kind --------------------------------------------------------------------------


def _to_bool(dtype):
    return _BOOL


def _real_part(dtype):
    return REAL_OF.get(dtype, dtype)


neg_p, neg = of_one(
    "neg",
    NUMBER,
    "Elementwise negation; of integers modulo the word size.",
    example="""
    >>> lax.neg(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """,
)
sign_p, sign = of_one(
    "sign",
    NUMBER,
    "Elementwise -1, 0 (with the sign of `x`) or 1; nan for nan; ``x / abs(x)`` for complex `x`.",
    example="""
    >>> lax.sign(jnp.array([-3., 0., 2.]))
    Array([-1.,  0.,  1.], dtype=float32)
    """,
)
floor_p, floor = of_one(
    "floor",
    FLOAT,
    "The largest integer not above each element, as a float.",
    example="""
    >>> lax.floor(jnp.array([1.8, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """,
)
ceil_p, ceil = of_one(
    "ceil",
    FLOAT,
    "The smallest integer not below each element, as a float.",
    example="""
    >>> lax.ceil(jnp.array([1.2, -1.2]))
    Array([ 2., -1.], dtype=float32)
    """,
)
is_finite_p, is_finite = of_one(
    "is_finite",
    FLOAT,
    "Whether each element is neither infinite nor nan, as bool.",
    result=_to_bool,
    example="""
    >>> lax.is_finite(jnp.array([1., jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """,
)
exp_p, exp = of_one(
    "exp",
    INEXACT,
    "Elementwise exponential.",
    accurate=True,
    example="""
    >>> lax.exp(jnp.array([0., 1.]))
    Array([1.       , 2.7182817], dtype=float32)
    """,
)
exp2_p, exp2 = of_one(
    "exp2",
    INEXACT,
    "Elementwise ``2 ** x``.",
    accurate=True,
    example="""
    >>> lax.exp2(jnp.array([0., 3.]))
    Array([1., 8.], dtype=float32)
    """,
)
expm1_p, expm1 = of_one(
    "expm1",
    INEXACT,
    "Elementwise ``exp(x) - 1`` without cancellation near 0.",
    accurate=True,
    example="""
    >>> lax.expm1(1e-6)
    Array(1.0000005e-06, dtype=float32, weak_type=True)
    """,
)
log_p, log = of_one(
    "log",
    INEXACT,
    "Elementwise natural logarithm.",
    accurate=True,
    example="""
    >>> lax.log(jnp.array([1., 10.]))
    Array([0.       , 2.3025851], dtype=float32)
    """,
)
log2_p, log2 = of_one(
    "log2",
    INEXACT,
    "Elementwise logarithm to base 2.",
    accurate=True,
    example="""
    >>> lax.log2(jnp.array([1., 8.]))
    Array([0., 3.], dtype=float32)
    """,
)
log1p_p, log1p = of_one(
    "log1p",
    INEXACT,
    "Elementwise ``log(1 + x)`` without cancellation near 0.",
    accurate=True,
    example="""
    >>> lax.log1p(1e-7)
    Array(9.9999994e-08, dtype=float32, weak_type=True)
    """,
)
sqrt_p, sqrt = of_one(
    "sqrt",
    INEXACT,
    "Elementwise square root.",
    accurate=True,
    example="""
    >>> lax.sqrt(jnp.array([4., 9.]))
    Array([2., 3.], dtype=float32)
    """,
)
rsqrt_p, rsqrt = of_one(
    "rsqrt",
    INEXACT,
    "Elementwise ``1 / sqrt(x)``.",
    accurate=True,
    example="""
    >>> lax.rsqrt(jnp.array([4., 16.]))
    Array([0.5 , 0.25], dtype=float32)
    """,
)
cbrt_p, cbrt = of_one(
    "cbrt",
    FLOAT,
    "Elementwise real cube root of floats.",
    accurate=True,
    example="""
    >>> lax.cbrt(jnp.array([27., -8.]))
    Array([ 3., -2.], dtype=float32)
    """,
)
square_p, square = of_one(
    "square",
    NUMBER,
    "Elementwise ``x * x``.",
    example="""
    >>> lax.square(jnp.array([3, -2]))
    Array([9, 4], dtype=int32)
    """,
)
one_minus_square_p, one_minus_square = of_one(
    "one_minus_square",
    NUMBER,
    "Elementwise ``1 - x * x`` as ``(1 + x) * (1 - x)``, without cancellation near 1 and -1.",
    example="""
    >>> lax.one_minus_square(jnp.array([0.5, 2.]))
    Array([ 0.75, -3.  ], dtype=float32)
    """,
)
sin_p, sin = of_one(
    "sin",
    INEXACT,
    "Elementwise sine.",
    accurate=True,
    example="""
    >>> lax.sin(jnp.array([0., 1.]))
    Array([0.        , 0.84147096], dtype=float32)
    """,
)
cos_p, cos = of_one(
    "cos",
    INEXACT,
    "Elementwise cosine.",
    accurate=True,
    example="""
    >>> lax.cos(jnp.array([0., 1.]))
    Array([1.       , 0.5403023], dtype=float32)
    """,
)
tan_p, tan = of_one(
    "tan",
    INEXACT,
    "Elementwise tangent.",
    accurate=True,
    example="""
    >>> lax.tan(jnp.array([0., 1.]))
    Array([0.       , 1.5574077], dtype=float32)
    """,
)
tanh_p, tanh = of_one(
    "tanh",
    INEXACT,
    "Elementwise hyperbolic tangent.",
    accurate=True,
    example="""
    >>> lax.tanh(jnp.array([0., 1.]))
    Array([0.       , 0.7615942], dtype=float32)
    """,
)
sinh_p, sinh = of_one(
    "sinh",
    INEXACT,
    "Elementwise hyperbolic sine.",
    example="""
    >>> lax.sinh(jnp.array([0., 1.]))
    Array([0.       , 1.1752012], dtype=float32)
    """,
)
cosh_p, cosh = of_one(
    "cosh",
    INEXACT,
    "Elementwise hyperbolic cosine.",
    example="""
    >>> lax.cosh(jnp.array([0., 1.]))
    Array([1.       , 1.5430806], dtype=float32)
    """,
)
asin_p, asin = of_one(
    "asin",
    INEXACT,
    "Elementwise inverse sine.",
    example="""
    >>> lax.asin(jnp.array([0., 1.]))
    Array([0.       , 1.5707964], dtype=float32)
    """,
)
acos_p, acos = of_one(
    "acos",
    INEXACT,
    "Elementwise inverse cosine.",
    example="""
    >>> lax.acos(jnp.array([1., 0.]))
    Array([0.       , 1.5707964], dtype=float32)
    """,
)
atan_p, atan = of_one(
    "atan",
    INEXACT,
    "Elementwise inverse tangent.",
    example="""
    >>> lax.atan(jnp.array([0., 1.]))
    Array([0.       , 0.7853981], dtype=float32)
    """,
)
asinh_p, asinh = of_one(
    "asinh",
    INEXACT,
    "Elementwise inverse hyperbolic sine.",
    example="""
    >>> lax.asinh(jnp.array([0., 1.]))
    Array([0.        , 0.88137364], dtype=float32)
    """,
)
acosh_p, acosh = of_one(
    "acosh",
    INEXACT,
    "Elementwise inverse hyperbolic cosine.",
    example="""
    >>> lax.acosh(jnp.array([1., 2.]))
    Array([0.      , 1.316958], dtype=float32)
    """,
)
atanh_p, atanh = of_one(
    "atanh",
    INEXACT,
    "Elementwise inverse hyperbolic tangent.",
    example="""
    >>> lax.atanh(jnp.array([0., 0.5]))
    Array([0.        , 0.54930615], dtype=float32)
    """,
)
logistic_p, logistic = of_one(
    "logistic",
    INEXACT,
    "Elementwise sigmoid ``1 / (1 + exp(-x))``.",
    accurate=True,
    example="""
    >>> lax.logistic(jnp.array([-jnp.inf, 0., 2.]))
    Array([0.      , 0.5     , 0.880797], dtype=float32)
    """,
)
abs_p, abs = of_one(
    "abs",
    SIGNED,
    "Elementwise absolute value; real where `x` is complex.",
    result=_real_part,
    example="""
    >>> lax.abs(jnp.array([-2, 3]))
    Array([2, 3], dtype=int32)
    """,
)
real_p, real = of_one(
    "real",
    COMPLEX,
    "The real parts of complex numbers.",
    result=_real_part,
    example="""
    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """,
)
imag_p, imag = of_one(
    "imag",
    COMPLEX,
    "The imaginary parts of complex numbers.",
    result=_real_part,
    example="""
    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """,
)
not_p, bitwise_not = of_one(
    "not",
    BITS,
    "Elementwise inversion of all bits; of bools negation.",
    name="bitwise_not",
    example="""
    >>> lax.bitwise_not(jnp.array([0, 7]))
    Array([-1, -8], dtype=int32)
    """,
)
population_count_p, population_count = of_one(
    "population_count",
    INTEGER,
    "The number of bits that are set in each integer, in its dtype.",
    example="""
    >>> lax.population_count(jnp.array([0, 1, 7, 255]))
    Array([0, 1, 3, 8], dtype=int32)
    """,
)
clz_p, clz = of_one(
    "clz",
    INTEGER,
    "The number of leading zero bits of each integer, in the same dtype.",
    example="""
    >>> lax.clz(jnp.array([1, 255], jnp.uint8))
    Array([7, 0], dtype=uint8)
    """,
)
round_p: Final = unary("round", FLOAT)
conj_p: Final = unary("conj", CONJUGABLE, lambda dtype: COMPLEX_OF.get(dtype, dtype))
integer_pow_p: Final = unary("integer_pow", NUMBER)

add_p, add = of_two(
    "add",
    NUMBER,
    "Elementwise sum.",
    example="""
    >>> lax.add(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([11, 22], dtype=int32)
    """,
)
sub_p, sub = of_two(
    "sub",
    NUMBER,
    "Elementwise difference.",
    example="""
    >>> lax.sub(jnp.array([5, 6]), jnp.array([1, 2]))
    Array([4, 4], dtype=int32)
    """,
)
div_p, div = of_two(
    "div",
    NUMBER,
    "Elementwise quotient; of integers towards zero, -1 (all bits set) for y = 0, and least / -1 is least.",
    example="""
    >>> lax.div(jnp.array([7, -7]), 2)
    Array([ 3, -3], dtype=int32)
    >>> lax.div(jnp.array([7., -7.]), 2.)
    Array([ 3.5, -3.5], dtype=float32)
    """,
)
rem_p, rem = of_two(
    "rem",
    REAL,
    "Elementwise remainder with the sign of `x` (as C's ``fmod``); of integers `x` for y = 0, and least % -1 is 0.",
    example="""
    >>> lax.rem(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """,
)
max_p, max = of_two(
    "max",
    ANY,
    "Elementwise maximum. It is NaN if an operand is NaN. Complex numbers are ordered by real, then imaginary part.",
    example="""
    >>> lax.max(jnp.array([1, 5]), jnp.array([4, 2]))
    Array([4, 5], dtype=int32)
    """,
)
min_p, min = of_two(
    "min",
    ANY,
    "Elementwise minimum. It is NaN if an operand is NaN. Complex numbers are ordered by real, then imaginary part.",
    example="""
    >>> lax.min(jnp.array([1, 5]), jnp.array([4, 2]))
    Array([1, 2], dtype=int32)
    """,
)
atan2_p, atan2 = of_two(
    "atan2",
    INEXACT,
    "The angle of the point (y, x), in (-pi, pi]; complex: ``-i log((y + i x) / sqrt(x*x + y*y))``.",
    example="""
    >>> lax.atan2(jnp.array([1., -1.]), jnp.array([-1., -1.]))
    Array([ 2.3561945, -2.3561945], dtype=float32)
    """,
)
complex_p, complex = of_two(
    "complex",
    COMPLEX_PART,
    "The complex numbers ``x + i y``.",
    result=COMPLEX_OF.__getitem__,
    example="""
    >>> lax.complex(jnp.array([1., 2.]), jnp.array([3., 4.]))
    Array([1.+3.j, 2.+4.j], dtype=complex64)
    """,
)
and_p, bitwise_and = of_two(
    "and",
    BITS,
    "Elementwise AND of integers or bools.",
    name="bitwise_and",
    example="""
    >>> lax.bitwise_and(jnp.array([12]), jnp.array([10]))
    Array([8], dtype=int32)
    """,
)
or_p, bitwise_or = of_two(
    "or",
    BITS,
    "Elementwise OR of integers or bools.",
    name="bitwise_or",
    example="""
    >>> lax.bitwise_or(jnp.array([12]), jnp.array([10]))
    Array([14], dtype=int32)
    """,
)
xor_p, bitwise_xor = of_two(
    "xor",
    BITS,
    "Elementwise exclusive OR of integers or bools.",
    name="bitwise_xor",
    example="""
    >>> lax.bitwise_xor(jnp.array([12]), jnp.array([10]))
    Array([6], dtype=int32)
    """,
)
shift_left_p, shift_left = of_two(
    "shift_left",
    INTEGER,
    "Elementwise ``x << y``; 0 where `y` is negative or not below the number of bits.",
    example="""
    >>> lax.shift_left(jnp.array([1, 2]), 3)
    Array([ 8, 16], dtype=int32)
    """,
)
shift_right_logical_p, shift_right_logical = of_two(
    "shift_right_logical",
    INTEGER,
    "Elementwise ``x >> y`` that fills with zeros; 0 where `y` is out of range.",
    example="""
    >>> lax.shift_right_logical(jnp.array([-16, 16], jnp.int8), jnp.int8(2))
    Array([60,  4], dtype=int8)
    """,
)
shift_right_arithmetic_p, shift_right_arithmetic = of_two(
    "shift_right_arithmetic",
    INTEGER,
    "Elementwise ``x >> y`` that fills with sign bits; all sign bits where `y` is out of range.",
    example="""
    >>> lax.shift_right_arithmetic(jnp.array([-16, 16]), 2)
    Array([-4,  4], dtype=int32)
    """,
)
eq_p, eq = of_two(
    "eq",
    COMPARABLE,
    "Elementwise ``x == y``, an array of bool.",
    result=_to_bool,
    example="""
    >>> lax.eq(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([ True, False], dtype=bool)
    """,
)
ne_p, ne = of_two(
    "ne",
    COMPARABLE,
    "Elementwise ``x != y``, an array of bool.",
    result=_to_bool,
    example="""
    >>> lax.ne(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([False,  True], dtype=bool)
    """,
)
ge_p, ge = of_two(
    "ge",
    ORDERED,
    "Elementwise ``x >= y``, an array of bool.",
    result=_to_bool,
    example="""
    >>> lax.ge(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """,
)
gt_p, gt = of_two(
    "gt",
    ORDERED,
    "Elementwise ``x > y``, an array of bool.",
    result=_to_bool,
    example="""
    >>> lax.gt(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """,
)
le_p, le = of_two(
    "le",
    ORDERED,
    "Elementwise ``x <= y``, an array of bool.",
    result=_to_bool,
    example="""
    >>> lax.le(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """,
)
lt_p, lt = of_two(
    "lt",
    ORDERED,
    "Elementwise ``x < y``, an array of bool.",
    result=_to_bool,
    example="""
    >>> lax.lt(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """,
)
mul_p: Final = nary("mul", NUMBER)
nextafter_p: Final = nary("nextafter", FLOAT)
mulhi_p: Final = nary("mulhi", INTEGER)
# The total order of IEEE 754: -nan < -inf < ... < -0 < +0 < ... < inf < nan.
eq_to_p: Final = nary("eq_to", ORDERED, result=_to_bool)
le_to_p: Final = nary("le_to", ORDERED, result=_to_bool)
lt_to_p: Final = nary("lt_to", ORDERED, result=_to_bool)
add_any_p: Final = nary("add_any", NUMBER)
add_jaxvals_p: Final = add_any_p

copy_p: Final = Primitive("copy", "elementwise")
stop_gradient_p: Final = Primitive("stop_gradient", "elementwise")
pow_p: Final = Primitive("pow", "elementwise")
clamp_p: Final = Primitive("clamp", "elementwise")
polynomial_p: Final = Primitive("polynomial", "elementwise")
select_n_p: Final = Primitive("select_n", "elementwise")


@copy_p.abstract
@stop_gradient_p.abstract
def _same(x):
    return x


_integer_pow_base = integer_pow_p.abstract_eval


@integer_pow_p.abstract
def _integer_pow_shape(x, *, y):
    if y < 0 and dtypes.is_integer(x.dtype):
        raise TypeError(
            f"integer_pow: an integer to a negative power is not an integer, got {x.str_short()} to the {y}"
        )
    return _integer_pow_base(x)


_mul_base = mul_p.abstract_eval


@mul_p.abstract
def _mul_shape(x, y, *, out_dtype=None):
    out = _mul_base(x, y)
    return out if out_dtype is None else out.update(dtype=out_dtype)


_any_pair_shape = nary("add_any", ANY).abstract_eval


@add_any_p.abstract
def _add_any_shape(x, y):
    if x == y:
        return x
    return _any_pair_shape(x, y)


_pow_same = nary("pow", INEXACT).abstract_eval


@pow_p.abstract
def _pow_shape(x, y):
    if x.dtype == y.dtype:
        return _pow_same(x, y)
    shape = result_shape("pow", (x, y))
    if not accepted(INEXACT)[x.dtype]:
        raise dtype_refused("pow", x.dtype, INEXACT, 0)
    if not accepted(NUMBER)[y.dtype]:
        raise dtype_refused("pow", y.dtype, NUMBER, 1)
    if not dtypes.is_integer(y.dtype):
        raise dtype_mismatch("pow", (x.dtype, y.dtype))
    return joined((x, y), shape, x.dtype, x.weak_type)


@clamp_p.abstract
def _clamp_shape(low, x, high):
    for name, bound in (("min", low), ("max", high)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), "
                f"got {name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    if low.dtype != x.dtype or high.dtype != x.dtype:
        raise dtype_mismatch("clamp", (low.dtype, x.dtype, high.dtype))
    if not accepted(ANY)[x.dtype]:
        raise dtype_refused("clamp", x.dtype, ANY)
    return joined((x, low, high), x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)


@polynomial_p.abstract
def _polynomial_shape(x, *coefficients, unroll=None):
    avals = (x, *coefficients)
    shape = result_shape("polynomial", avals)
    for i, aval in enumerate(avals):
        if not accepted(NUMBER)[aval.dtype]:
            raise dtype_refused("polynomial", aval.dtype, NUMBER, i)
    if any(aval.dtype != x.dtype for aval in avals):
        raise dtype_mismatch("polynomial", [aval.dtype for aval in avals])
    return joined(avals, shape, x.dtype, all(aval.weak_type for aval in avals))


@select_n_p.abstract
def _select_shape(which, *cases):
    if not cases:
        raise TypeError("select_n: at least one case is needed, got none")
    first = cases[0]
    if not (dtypes.is_integer(which.dtype) or which.dtype == _BOOL):
        raise TypeError(f"select_n: `which` holds booleans or integers, got {which.dtype}")
    if which.dtype == _BOOL and len(cases) > 2:
        raise TypeError(f"select_n: a boolean `which` chooses between two cases, got {len(cases)}")
    for case in cases:
        if case.shape != first.shape:
            raise TypeError(f"select_n: the cases have one shape, got {', '.join(str(c.shape) for c in cases)}")
    if which.shape and which.shape != first.shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, "
            f"got `which` shape {which.shape} but case shape {first.shape}."
        )
    if any(case.dtype != first.dtype for case in cases):
        raise dtype_mismatch("select", [case.dtype for case in cases])
    vma = frozenset().union(which.vma, *(case.vma for case in cases))
    return first.update(weak_type=all(case.weak_type for case in cases), vma=vma)


# ---- functions: one operand ----------------------------------------------------------------------


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer, as a float.

    Args:
      x: array of floats.
      rounding_method: where halves go, a `RoundingMethod`.

    Examples:

      >>> lax.round(jnp.array([0.5, -1.5, 2.4]))
      Array([ 1., -2.,  2.], dtype=float32)
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


def reciprocal(x: ArrayLike) -> Array:
    """Elementwise ``1 / x`` of floats or complex numbers.

    Examples:

      >>> lax.reciprocal(jnp.array([2., 4.]))
      Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow_p.bind(x, y=-1)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Elementwise ``x ** y`` with a Python integer exponent.

    Args:
      x: integers, floats or complex numbers.
      y: the exponent; not negative if `x` holds integers.

    Examples:

      >>> lax.integer_pow(jnp.array([2., 3.]), -2)
      Array([0.25      , 0.11111111], dtype=float32)
    """
    return integer_pow_p.bind(x, y=int(y))


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; floats become complex numbers.

    Examples:

      >>> lax.conj(jnp.array([1 + 2j]))
      Array([1.-2.j], dtype=complex64)
    """
    return conj_p.bind(x, input_dtype=aval_of(x).dtype)


# ---- functions: two operands ---------------------------------------------------------------------


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = None) -> Array:
    """Elementwise product; operands as in `add`.

    Args:
      x, y: the factors.
      out_dtype: the dtype in which to multiply and return, if not that of the operands.

    Examples:

      >>> lax.mul(jnp.array([1, 5]), jnp.array([4, 2]))
      Array([ 4, 10], dtype=int32)
    """
    if out_dtype is not None:
        return bind_nary(mul_p, x, y, out_dtype=dtypes.canonicalize_dtype(dtypes.as_dtype(out_dtype)))
    return bind_pair(mul_p, x, y)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise ``x ** y``.

    Args:
      x: floats or complex numbers.
      y: of the dtype of `x`, or integers.

    Examples:

      >>> lax.pow(jnp.array([2., 3.]), 3)
      Array([ 8., 27.], dtype=float32)
    """
    return bind_pair(pow_p, x, y)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next representable float after `x1` in the direction of `x2`.

    Args:
      x1, x2: arrays of one float dtype.

    Examples:

      >>> lax.nextafter(1., 2.) - 1
      Array(1.1920929e-07, dtype=float32, weak_type=True)
    """
    return bind_pair(nextafter_p, x1, x2)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high half of the product of two integers, i.e. ``(x * y) >> bits`` without overflow.

    Args:
      x, y: arrays of one integer dtype.

    Examples:

      >>> lax.mulhi(jnp.array([200], jnp.uint8), jnp.array([100], jnp.uint8))
      Array([78], dtype=uint8)
    """
    return bind_pair(mulhi_p, x, y)


def add_any(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum of two (co)tangents of the same type."""
    return add_any_p.bind(x, y)


# ---- functions: choice ---------------------------------------------------------------------------


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """``min`` where `x` is below it, ``max`` where `x` is above it, else `x`.

    Args:
      min, max: scalars, or arrays of the shape of `x`; of its dtype.
      x: the array to limit.

    Examples:

      >>> lax.clamp(0., jnp.array([-1., 0.5, 4.]), 1.)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    return clamp_p.bind(min, x, max)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Takes each element from one of several arrays.

    Args:
      which: a scalar or an array of the shape of the cases, of bool (at most two cases; False chooses
        the first) or integers (clamped into range).
      *cases: arrays of equal shape and dtype, at least one.

    Examples:

      >>> lax.select_n(jnp.array([0, 2, 1]), jnp.zeros(3), jnp.ones(3), jnp.full(3, 2.))
      Array([0., 2., 1.], dtype=float32)
    """
    return select_n_p.bind(which, *cases)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred` holds, else `on_false`.

    Args:
      pred: booleans, a scalar or an array of the shape of the others.
      on_true, on_false: arrays of equal shape and dtype.

    Examples:

      >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
      Array([ 1, 20], dtype=int32)
    """
    return select_n_p.bind(pred, on_false, on_true)


def stop_gradient(x: T) -> T:
    """`x` itself, with a derivative of zero.

    Args:
      x: a pytree of arrays.

    Examples:

      >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.)
      Array(3., dtype=float32, weak_type=True)
    """
    if isinstance(x, Array | np.ndarray):
        return stop_gradient_p.bind(x)
    return tree_map(stop_gradient_p.bind, x)
