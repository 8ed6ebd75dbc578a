"""Elementwise primitives: arithmetic, comparison, bits, complex parts, transcendental functions.

Operands of an n-ary primitive have equal shapes or rank 0, and equal dtypes. The public
functions also take axes of length 1 against longer ones; they insert the broadcast, so that
the primitive does not have to know. `bedrax.numpy` is where dtypes are promoted.
"""

from __future__ import annotations

import enum

import numpy as np

from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
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

pure_shapes.add("elementwise")

__all__ = [
    "AccuracyMode", "RoundingMethod", "Tolerance", "abs", "abs_p", "acos", "acos_p", "acosh", "acosh_p", "add",
    "add_any", "add_any_p", "add_jaxvals_p", "add_p", "and_p", "asin", "asin_p", "asinh", "asinh_p", "atan", "atan2", "atan2_p", "atan_p",
    "atanh", "atanh_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "cbrt_p", "ceil", "ceil_p",
    "clamp", "clamp_p", "clz", "clz_p", "complex", "complex_p", "conj", "conj_p", "copy_p", "cos", "cos_p", "cosh",
    "cosh_p", "div", "div_p", "eq", "eq_p", "eq_to_p", "exp", "exp2", "exp2_p", "exp_p", "expm1", "expm1_p", "floor",
    "floor_p", "ge", "ge_p", "gt", "gt_p", "imag", "imag_p", "integer_pow", "integer_pow_p", "is_finite",
    "is_finite_p", "le", "le_p", "le_to_p", "log", "log1p", "log1p_p", "log_p", "logistic", "logistic_p", "lt", "lt_p",
    "lt_to_p", "max", "max_p", "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p", "ne", "ne_p", "neg", "neg_p",
    "nextafter", "nextafter_p", "not_p", "or_p", "population_count", "population_count_p", "pow", "pow_p", "real",
    "real_p", "reciprocal", "rem", "rem_p", "round", "round_p", "rsqrt", "rsqrt_p", "select", "select_n", "select_n_p",
    "shift_left", "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical",
    "shift_right_logical_p", "sign", "sign_p", "sin", "sin_p", "sinh", "sinh_p", "sqrt", "sqrt_p", "square", "square_p",
    "stop_gradient", "stop_gradient_p", "sub", "sub_p", "tan", "tan_p", "tanh", "tanh_p", "xor_p",
]  # fmt: skip

_BOOL = np.dtype(bool)


# ---- primitives by kind --------------------------------------------------------------------------


def _to_bool(dtype):
    return _BOOL


def _real_part(dtype):
    return REAL_OF.get(dtype, dtype)


neg_p = unary("neg", NUMBER)
sign_p = unary("sign", NUMBER)
floor_p = unary("floor", FLOAT)
ceil_p = unary("ceil", FLOAT)
round_p = unary("round", FLOAT)
is_finite_p = unary("is_finite", FLOAT, _to_bool)
exp_p = unary("exp", INEXACT)
exp2_p = unary("exp2", INEXACT)
expm1_p = unary("expm1", INEXACT)
log_p = unary("log", INEXACT)
log1p_p = unary("log1p", INEXACT)
sqrt_p = unary("sqrt", INEXACT)
rsqrt_p = unary("rsqrt", INEXACT)
cbrt_p = unary("cbrt", FLOAT)
square_p = unary("square", NUMBER)
sin_p = unary("sin", INEXACT)
cos_p = unary("cos", INEXACT)
tan_p = unary("tan", INEXACT)
tanh_p = unary("tanh", INEXACT)
sinh_p = unary("sinh", INEXACT)
cosh_p = unary("cosh", INEXACT)
asin_p = unary("asin", INEXACT)
acos_p = unary("acos", INEXACT)
atan_p = unary("atan", INEXACT)
asinh_p = unary("asinh", INEXACT)
acosh_p = unary("acosh", INEXACT)
atanh_p = unary("atanh", INEXACT)
logistic_p = unary("logistic", INEXACT)
abs_p = unary("abs", SIGNED, _real_part)
real_p = unary("real", COMPLEX, _real_part)
imag_p = unary("imag", COMPLEX, _real_part)
conj_p = unary("conj", CONJUGABLE, lambda dtype: COMPLEX_OF.get(dtype, dtype))
not_p = unary("not", BITS)
population_count_p = unary("population_count", INTEGER)
clz_p = unary("clz", INTEGER)
integer_pow_p = unary("integer_pow", NUMBER)

add_p = nary("add", NUMBER)
sub_p = nary("sub", NUMBER)
mul_p = nary("mul", NUMBER)
div_p = nary("div", NUMBER)
rem_p = nary("rem", REAL)
max_p = nary("max", ANY)
min_p = nary("min", ANY)
atan2_p = nary("atan2", INEXACT)
nextafter_p = nary("nextafter", FLOAT)
complex_p = nary("complex", COMPLEX_PART, result=COMPLEX_OF.__getitem__)
and_p = nary("and", BITS)
or_p = nary("or", BITS)
xor_p = nary("xor", BITS)
shift_left_p = nary("shift_left", INTEGER)
shift_right_logical_p = nary("shift_right_logical", INTEGER)
shift_right_arithmetic_p = nary("shift_right_arithmetic", INTEGER)
mulhi_p = nary("mulhi", INTEGER)
eq_p = nary("eq", COMPARABLE, result=_to_bool)
ne_p = nary("ne", COMPARABLE, result=_to_bool)
ge_p = nary("ge", ORDERED, result=_to_bool)
gt_p = nary("gt", ORDERED, result=_to_bool)
le_p = nary("le", ORDERED, result=_to_bool)
lt_p = nary("lt", ORDERED, result=_to_bool)
# The total order of IEEE 754: -nan < -inf < ... < -0 < +0 < ... < inf < nan.
eq_to_p = nary("eq_to", ORDERED, result=_to_bool)
le_to_p = nary("le_to", ORDERED, result=_to_bool)
lt_to_p = nary("lt_to", ORDERED, result=_to_bool)
add_any_p = add_jaxvals_p = nary("add_any", NUMBER)

copy_p = Primitive("copy", "elementwise")
stop_gradient_p = Primitive("stop_gradient", "elementwise")
pow_p = Primitive("pow", "elementwise")
clamp_p = Primitive("clamp", "elementwise")
select_n_p = Primitive("select_n", "elementwise")


@copy_p.abstract
@stop_gradient_p.abstract
def _same(x):
    return x


_integer_pow_base = integer_pow_p.abstract_eval


@integer_pow_p.abstract
def _integer_pow_shape(x, *, y):
    if y < 0 and dtypes.is_integer(x.dtype):
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({x.str_short()}, {y})")
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


@select_n_p.abstract
def _select_shape(which, *cases):
    if not cases:
        raise TypeError("select must have at least one case")
    first = cases[0]
    if not (dtypes.is_integer(which.dtype) or which.dtype == _BOOL):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype}.")
    if which.dtype == _BOOL and len(cases) > 2:
        raise TypeError("select with boolean `which` cannot have > 2 cases.")
    for case in cases:
        if case.shape != first.shape:
            raise TypeError(f"select cases must have the same shapes, got [{', '.join(str(c.shape) for c in cases)}].")
    if which.shape and which.shape != first.shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, "
            f"got `which` shape {which.shape} but case shape {first.shape}."
        )
    if any(case.dtype != first.dtype for case in cases):
        raise dtype_mismatch("select", [case.dtype for case in cases])
    vma = frozenset().union(which.vma, *(case.vma for case in cases))
    return first.update(weak_type=all(case.weak_type for case in cases), vma=vma)


# ---- options -------------------------------------------------------------------------------------


class RoundingMethod(enum.IntEnum):
    """What `round` does with values halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """How accurate an implementation of a transcendental function to choose."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """Upper bounds for the error of a transcendental function.

    Args:
      atol: absolute error, not negative.
      rtol: relative error, not negative.
      ulps: error in units of the last place, not negative.

    Raises:
      ValueError: a bound is negative.
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerances must be non-negative, got atol={atol}, rtol={rtol}, ulps={ulps}.")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps

    def __eq__(self, other):
        return isinstance(other, Tolerance) and (self.atol, self.rtol, self.ulps) == (
            other.atol,
            other.rtol,
            other.ulps,
        )

    def __hash__(self):
        return hash((Tolerance, self.atol, self.rtol, self.ulps))

    def __repr__(self):
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def _bind_accurate(prim, x, accuracy):
    if accuracy is AccuracyMode.DEFAULT:
        return prim.bind(x)
    return prim.bind(x, accuracy=accuracy)


# ---- functions: one operand ----------------------------------------------------------------------


def neg(x):
    """Elementwise negation, of integers (modulo the word size), floats and complex numbers."""
    return neg_p.bind(x)


def sign(x):
    """Elementwise sign: -1, 0 (with the sign of `x`) or 1; nan for nan; ``x / abs(x)`` for complex `x`."""
    return sign_p.bind(x)


def floor(x):
    """The largest integer not above each element, as a float."""
    return floor_p.bind(x)


def ceil(x):
    """The smallest integer not below each element, as a float."""
    return ceil_p.bind(x)


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The nearest integer, as a float.

    Args:
      x: array of floats.
      rounding_method: where halves go, a `RoundingMethod`.
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


def is_finite(x):
    """Whether each element is neither infinite nor nan; an array of bool."""
    return is_finite_p.bind(x)


def exp(x, *, accuracy=None):
    """Elementwise exponential.

    Args:
      x: floats or complex numbers.
      accuracy: `Tolerance` or `AccuracyMode` that the compiler shall meet; None leaves it the choice.
    """
    return exp_p.bind(x) if accuracy is None else _bind_accurate(exp_p, x, accuracy)


def exp2(x, *, accuracy=None):
    """Elementwise ``2 ** x``; `accuracy` as in `exp`."""
    return exp2_p.bind(x) if accuracy is None else _bind_accurate(exp2_p, x, accuracy)


def expm1(x, *, accuracy=None):
    """Elementwise ``exp(x) - 1`` without cancellation near 0; `accuracy` as in `exp`."""
    return expm1_p.bind(x) if accuracy is None else _bind_accurate(expm1_p, x, accuracy)


def log(x, *, accuracy=None):
    """Elementwise natural logarithm; `accuracy` as in `exp`."""
    return log_p.bind(x) if accuracy is None else _bind_accurate(log_p, x, accuracy)


def log1p(x, *, accuracy=None):
    """Elementwise ``log(1 + x)`` without cancellation near 0; `accuracy` as in `exp`."""
    return log1p_p.bind(x) if accuracy is None else _bind_accurate(log1p_p, x, accuracy)


def sqrt(x, *, accuracy=None):
    """Elementwise square root; `accuracy` as in `exp`."""
    return sqrt_p.bind(x) if accuracy is None else _bind_accurate(sqrt_p, x, accuracy)


def rsqrt(x, *, accuracy=None):
    """Elementwise ``1 / sqrt(x)``; `accuracy` as in `exp`."""
    return rsqrt_p.bind(x) if accuracy is None else _bind_accurate(rsqrt_p, x, accuracy)


def cbrt(x, *, accuracy=None):
    """Elementwise real cube root of floats; `accuracy` as in `exp`."""
    return cbrt_p.bind(x) if accuracy is None else _bind_accurate(cbrt_p, x, accuracy)


def square(x):
    """Elementwise ``x * x``."""
    return square_p.bind(x)


def reciprocal(x):
    """Elementwise ``1 / x`` of floats or complex numbers."""
    return integer_pow_p.bind(x, y=-1)


def integer_pow(x, y: int):
    """Elementwise ``x ** y`` with a Python integer exponent.

    Args:
      x: integers, floats or complex numbers.
      y: the exponent; not negative if `x` holds integers.
    """
    return integer_pow_p.bind(x, y=int(y))


def sin(x, *, accuracy=None):
    """Elementwise sine; `accuracy` as in `exp`."""
    return sin_p.bind(x) if accuracy is None else _bind_accurate(sin_p, x, accuracy)


def cos(x, *, accuracy=None):
    """Elementwise cosine; `accuracy` as in `exp`."""
    return cos_p.bind(x) if accuracy is None else _bind_accurate(cos_p, x, accuracy)


def tan(x, *, accuracy=None):
    """Elementwise tangent; `accuracy` as in `exp`."""
    return tan_p.bind(x) if accuracy is None else _bind_accurate(tan_p, x, accuracy)


def tanh(x, *, accuracy=None):
    """Elementwise hyperbolic tangent; `accuracy` as in `exp`."""
    return tanh_p.bind(x) if accuracy is None else _bind_accurate(tanh_p, x, accuracy)


def sinh(x):
    """Elementwise hyperbolic sine."""
    return sinh_p.bind(x)


def cosh(x):
    """Elementwise hyperbolic cosine."""
    return cosh_p.bind(x)


def asin(x):
    """Elementwise inverse sine."""
    return asin_p.bind(x)


def acos(x):
    """Elementwise inverse cosine."""
    return acos_p.bind(x)


def atan(x):
    """Elementwise inverse tangent."""
    return atan_p.bind(x)


def asinh(x):
    """Elementwise inverse hyperbolic sine."""
    return asinh_p.bind(x)


def acosh(x):
    """Elementwise inverse hyperbolic cosine."""
    return acosh_p.bind(x)


def atanh(x):
    """Elementwise inverse hyperbolic tangent."""
    return atanh_p.bind(x)


def logistic(x, *, accuracy=None):
    """Elementwise sigmoid ``1 / (1 + exp(-x))``; `accuracy` as in `exp`."""
    return logistic_p.bind(x) if accuracy is None else _bind_accurate(logistic_p, x, accuracy)


def abs(x):
    """Elementwise absolute value; real where `x` is complex."""
    return abs_p.bind(x)


def real(x):
    """The real parts of complex numbers."""
    return real_p.bind(x)


def imag(x):
    """The imaginary parts of complex numbers."""
    return imag_p.bind(x)


def conj(x):
    """The complex conjugate; floats become complex numbers."""
    return conj_p.bind(x, input_dtype=aval_of(x).dtype)


def bitwise_not(x):
    """Elementwise inversion of all bits, or logical negation of bools."""
    return not_p.bind(x)


def population_count(x):
    """The number of bits set in each integer, in the same dtype."""
    return population_count_p.bind(x)


def clz(x):
    """The number of leading zero bits of each integer, in the same dtype."""
    return clz_p.bind(x)


# ---- functions: two operands ---------------------------------------------------------------------


def add(x, y):
    """Elementwise sum.

    Args:
      x, y: arrays of equal dtype; scalars, or arrays of equal rank whose axes match or have length 1.

    Raises:
      TypeError: dtypes or shapes differ. `jnp.add` promotes and broadcasts.
    """
    return bind_pair(add_p, x, y)


def sub(x, y):
    """Elementwise difference; operands as in `add`."""
    return bind_pair(sub_p, x, y)


def mul(x, y, *, out_dtype=None):
    """Elementwise product; operands as in `add`.

    Args:
      x, y: the factors.
      out_dtype: the dtype in which to multiply and return, if not that of the operands.
    """
    if out_dtype is not None:
        return bind_nary(mul_p, x, y, out_dtype=dtypes.canonicalize_dtype(dtypes.as_dtype(out_dtype)))
    return bind_pair(mul_p, x, y)


def div(x, y):
    """Elementwise quotient; operands as in `add`.

    Integers are divided towards zero. Division of an integer by zero gives -1 (all bits set), and of
    the smallest signed integer by -1 gives itself.
    """
    return bind_pair(div_p, x, y)


def rem(x, y):
    """Elementwise remainder with the sign of `x` (as C's ``%`` and ``fmod``).

    For integers, ``rem(x, 0)`` is `x`, and the remainder of the smallest integer by -1 is 0.
    """
    return bind_pair(rem_p, x, y)


def pow(x, y):
    """Elementwise ``x ** y``.

    Args:
      x: floats or complex numbers.
      y: of the dtype of `x`, or integers.
    """
    return bind_pair(pow_p, x, y)


def max(x, y):
    """Elementwise maximum; nan wins, complex numbers are ordered by real, then imaginary part."""
    return bind_pair(max_p, x, y)


def min(x, y):
    """Elementwise minimum; nan wins, complex numbers are ordered by real, then imaginary part."""
    return bind_pair(min_p, x, y)


def atan2(x, y):
    """The angle of the point (y, x), in (-pi, pi]; ``-i log((y + i x) / sqrt(x*x + y*y))`` for complex numbers."""
    return bind_pair(atan2_p, x, y)


def nextafter(x1, x2):
    """The next representable float after `x1` in the direction of `x2`."""
    return bind_pair(nextafter_p, x1, x2)


def complex(x, y):
    """The complex numbers ``x + i y`` from two arrays of float32 or of float64."""
    return bind_pair(complex_p, x, y)


def bitwise_and(x, y):
    """Elementwise AND of integers or bools."""
    return bind_pair(and_p, x, y)


def bitwise_or(x, y):
    """Elementwise OR of integers or bools."""
    return bind_pair(or_p, x, y)


def bitwise_xor(x, y):
    """Elementwise exclusive OR of integers or bools."""
    return bind_pair(xor_p, x, y)


def shift_left(x, y):
    """Elementwise ``x << y``; 0 where `y` is negative or not below the number of bits."""
    return bind_pair(shift_left_p, x, y)


def shift_right_logical(x, y):
    """Elementwise right shift that fills with zeros; 0 where `y` is out of range."""
    return bind_pair(shift_right_logical_p, x, y)


def shift_right_arithmetic(x, y):
    """Elementwise right shift that fills with the sign bit; all sign bits where `y` is out of range."""
    return bind_pair(shift_right_arithmetic_p, x, y)


def mulhi(x, y, /):
    """The high half of the product of two integers, i.e. ``(x * y) >> bits`` without overflow."""
    return bind_pair(mulhi_p, x, y)


def eq(x, y):
    """Elementwise ``x == y``, an array of bool."""
    return bind_pair(eq_p, x, y)


def ne(x, y):
    """Elementwise ``x != y``, an array of bool."""
    return bind_pair(ne_p, x, y)


def ge(x, y):
    """Elementwise ``x >= y``, an array of bool."""
    return bind_pair(ge_p, x, y)


def gt(x, y):
    """Elementwise ``x > y``, an array of bool."""
    return bind_pair(gt_p, x, y)


def le(x, y):
    """Elementwise ``x <= y``, an array of bool."""
    return bind_pair(le_p, x, y)


def lt(x, y):
    """Elementwise ``x < y``, an array of bool."""
    return bind_pair(lt_p, x, y)


def add_any(x, y):
    """The sum of two (co)tangents of the same type."""
    return add_any_p.bind(x, y)


# ---- functions: choice ---------------------------------------------------------------------------


def clamp(min, x, max):
    """``min`` where `x` is below it, ``max`` where `x` is above it, else `x`.

    Args:
      min, max: scalars, or arrays of the shape of `x`; of its dtype.
      x: the array to limit.
    """
    return clamp_p.bind(min, x, max)


def select_n(which, *cases):
    """Takes each element from one of several arrays.

    Args:
      which: a scalar or an array of the shape of the cases, of bool (at most two cases; False chooses
        the first) or integers (clamped into range).
      *cases: arrays of equal shape and dtype, at least one.
    """
    return select_n_p.bind(which, *cases)


def select(pred, on_true, on_false):
    """`on_true` where `pred` holds, else `on_false`; shapes and dtypes as in `select_n`."""
    return select_n_p.bind(pred, on_false, on_true)


def stop_gradient(x):
    """`x` itself, with a derivative of zero.

    Args:
      x: a pytree of arrays.
    """
    if isinstance(x, Array | np.ndarray):
        return stop_gradient_p.bind(x)
    return tree_map(stop_gradient_p.bind, x)
