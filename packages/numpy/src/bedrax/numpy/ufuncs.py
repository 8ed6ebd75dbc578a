"""Elementwise functions: a table of functions of one operation after promotion, and the composed functions.

The functions do not pass through `jit`; they add to an operation only the promotion of operands.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.defining import with_example
from bedrax.core.one_program import one_program
from bedrax.core.public import public
from bedrax.core.tracing import Primitive, binary, unary
from bedrax.core.typing import ArrayLike
from bedrax.lax import operators
from bedrax.lax.operators import documentation, documented, inexact2, with_real
from bedrax.lax.primitives import elementwise as ops
from bedrax.lax.promotion import _INEXACT, broadcast, inexact, operand, promote, promote_dtypes, promote_pair
from bedrax.numpy import cumulative, derivative_rules, reductions
from bedrax.numpy.arguments import as_bool
from bedrax.numpy.creation import asarray
from bedrax.numpy.reductions import any as any_
from bedrax.numpy.selection import choose_where
from bedrax.numpy.universal import ufunc

_BOOL = dtypes.bool_dtype


# ---- kinds of functions: how operands are prepared ---------------------------------------------------------


def inexact1(name: str, prim: Primitive, what: str, example: str) -> Callable[..., Any]:
    """A function of one operand; integers and bools become floats."""
    return documented(unary(prim, _INEXACT, functools.partial(inexact, name)), name, what, __name__, example)


def logical1(name: str, prim: Primitive, what: str, example: str) -> Callable[..., Any]:
    """A function of one operand, converted to booleans."""
    return documented(unary(prim, (), lambda x: as_bool(operand(name, x))), name, what, __name__, example)


def logical2(name: str, prim: Primitive) -> Callable[..., Any]:
    """A function of two operands, converted to booleans."""
    bind = binary(prim)

    def function(x, y, /):
        x, y = promote_pair(name, as_bool(operand(name, x)), as_bool(operand(name, y, 1)))
        return bind(x, y)

    return function


# ---- functions of one operation ------------------------------------------------------------------------------

exp: Final = inexact1(
    "exp",
    ops.exp_p,
    "exponential",
    """
    >>> jnp.exp(jnp.array([0., 1., -jnp.inf]))
    Array([1.       , 2.7182817, 0.       ], dtype=float32)
    """,
)
exp2: Final = inexact1(
    "exp2",
    ops.exp2_p,
    "``2 ** x``",
    """
    >>> jnp.exp2(jnp.array([0., 3., -1.]))
    Array([1. , 8. , 0.5], dtype=float32)
    """,
)
expm1: Final = inexact1(
    "expm1",
    ops.expm1_p,
    "``exp(x) - 1``, accurate near 0",
    """
    >>> jnp.expm1(1e-6)
    Array(1.0000005e-06, dtype=float32, weak_type=True)
    >>> jnp.exp(1e-6) - 1
    Array(9.536743e-07, dtype=float32, weak_type=True)
    """,
)
log: Final = inexact1(
    "log",
    ops.log_p,
    "natural logarithm",
    """
    >>> jnp.log(jnp.array([1., jnp.e, 0.]))
    Array([0.        , 0.99999994,       -inf], dtype=float32)
    """,
)
log2: Final = inexact1(
    "log2",
    ops.log2_p,
    "logarithm to base 2",
    """
    >>> jnp.log2(jnp.array([1., 8., 0.5]))
    Array([ 0.,  3., -1.], dtype=float32)
    """,
)
log1p: Final = inexact1(
    "log1p",
    ops.log1p_p,
    "``log(1 + x)``, accurate near 0",
    """
    >>> jnp.log1p(1e-7)
    Array(9.9999994e-08, dtype=float32, weak_type=True)
    """,
)
sqrt: Final = inexact1(
    "sqrt",
    ops.sqrt_p,
    "square root",
    """
    >>> jnp.sqrt(jnp.array([4., -1.]))
    Array([ 2., nan], dtype=float32)
    >>> jnp.sqrt(jnp.array([-1 + 0j]))
    Array([0.+1.j], dtype=complex64)
    """,
)
cbrt: Final = inexact1(
    "cbrt",
    ops.cbrt_p,
    "real cube root",
    """
    >>> jnp.cbrt(jnp.array([27., -8.]))
    Array([ 3., -2.], dtype=float32)
    """,
)
sin: Final = inexact1(
    "sin",
    ops.sin_p,
    "sine",
    """
    >>> jnp.sin(jnp.array([0., jnp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """,
)
cos: Final = inexact1(
    "cos",
    ops.cos_p,
    "cosine",
    """
    >>> jnp.cos(jnp.array([0., jnp.pi])).round(3)
    Array([ 1., -1.], dtype=float32)
    """,
)
tan: Final = inexact1(
    "tan",
    ops.tan_p,
    "tangent",
    """
    >>> jnp.tan(jnp.array([0., jnp.pi / 4]))
    Array([0., 1.], dtype=float32)
    """,
)
arcsin: Final = inexact1(
    "arcsin",
    ops.asin_p,
    "inverse sine, in [-pi/2, pi/2]",
    """
    >>> jnp.arcsin(jnp.array([0., 1., 2.]))
    Array([0.       , 1.5707964,       nan], dtype=float32)
    """,
)
arccos: Final = inexact1(
    "arccos",
    ops.acos_p,
    "inverse cosine, in [0, pi]",
    """
    >>> jnp.acos(jnp.array([1., 0., 2.]))
    Array([0.       , 1.5707964,       nan], dtype=float32)
    """,
)
arctan: Final = inexact1(
    "arctan",
    ops.atan_p,
    "inverse tangent, in [-pi/2, pi/2]",
    """
    >>> jnp.arctan(jnp.array([0., 1., jnp.inf]))
    Array([0.       , 0.7853981, 1.5707964], dtype=float32)
    """,
)
sinh: Final = inexact1(
    "sinh",
    ops.sinh_p,
    "hyperbolic sine",
    """
    >>> jnp.sinh(jnp.array([0., 1.]))
    Array([0.       , 1.1752012], dtype=float32)
    """,
)
cosh: Final = inexact1(
    "cosh",
    ops.cosh_p,
    "hyperbolic cosine",
    """
    >>> jnp.cosh(jnp.array([0., 1.]))
    Array([1.       , 1.5430806], dtype=float32)
    """,
)
tanh: Final = inexact1(
    "tanh",
    ops.tanh_p,
    "hyperbolic tangent",
    """
    >>> jax.nn.tanh(jnp.array([0., 1.]))
    Array([0.       , 0.7615942], dtype=float32)
    """,
)
arcsinh: Final = inexact1(
    "arcsinh",
    ops.asinh_p,
    "inverse hyperbolic sine",
    """
    >>> jnp.arcsinh(jnp.array([0., 1.]))
    Array([0.        , 0.88137364], dtype=float32)
    """,
)
arccosh: Final = inexact1(
    "arccosh",
    ops.acosh_p,
    "inverse hyperbolic cosine",
    """
    >>> jnp.acosh(jnp.array([1., 2., 0.]))
    Array([0.      , 1.316958,      nan], dtype=float32)
    """,
)
arctanh: Final = inexact1(
    "arctanh",
    ops.atanh_p,
    "inverse hyperbolic tangent",
    """
    >>> jnp.arctanh(jnp.array([0., 0.5, 1.]))
    Array([0.        , 0.54930615,        inf], dtype=float32)
    """,
)
arctan2: Final = documented(
    inexact2("arctan2", ops.atan2_p),
    "arctan2",
    "the angle of the point with coordinates ``(x2, x1)``",
    __name__,
    """
    >>> y, x = jnp.array([1., 1., -1.]), jnp.array([1., -1., -1.])
    >>> jnp.rad2deg(jnp.arctan2(y, x))
    Array([  45.,  135., -135.], dtype=float32)
    """,
)
nextafter: Final = documented(
    inexact2("nextafter", ops.nextafter_p),
    "nextafter",
    "the next float after `x1` in the direction of `x2`",
    __name__,
    """
    >>> jnp.nextafter(jnp.float32(1), jnp.float32(2)) - 1
    Array(1.1920929e-07, dtype=float32)
    """,
)
logical_not: Final = logical1(
    "logical_not",
    ops.not_p,
    "``not x``",
    """
    >>> jnp.logical_not(jnp.array([0, 2]))
    Array([ True, False], dtype=bool)
    """,
)


# ---- ufuncs with methods ---------------------------------------------------------------------------------------


def _reduce_with(function: str) -> Callable:
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        more = {} if dtype is None else {"dtype": dtype}
        if function in ("max", "min", "all", "any") and more:
            a, more = asarray(a, dtype=dtype), {}
        if function in ("all", "any"):
            if initial is not None:
                raise NotImplementedError(f"jnp.{function} takes no initial value")
        else:
            more["initial"] = initial
        return getattr(reductions, function)(a, axis=axis, keepdims=keepdims, where=where, **more)

    return reduce


def _accumulate_with(function: str) -> Callable:
    def accumulate(a, axis=0, dtype=None):
        return getattr(cumulative, function)(a, axis=axis, dtype=dtype)

    return accumulate


def _at_with(method: str) -> Callable:
    def at(a, indices, b=None):
        if b is None:
            raise TypeError(f"jnp.ufunc.at of a function of two operands needs the second one, b; got None ({method})")
        return getattr(asarray(operand(method, a)).at[indices], method)(b)

    return at


def _max(x, y, /):
    x, y = promote_pair("maximum", x, y)
    return ops.max_p.bind(x, y)


def _min(x, y, /):
    x, y = promote_pair("minimum", x, y)
    return ops.min_p.bind(x, y)


@one_program
def log_add_exp(x: Array, y: ArrayLike, /) -> Array:
    """``log(exp(x) + exp(y))`` without overflow."""
    x, y = promote("logaddexp", (x, y), True)
    return derivative_rules.log_add_exp()(x, y)


@one_program
def log_add_exp2(x: ArrayLike, y: ArrayLike, /) -> Any:
    """``log2(2 ** x + 2 ** y)`` without overflow."""
    x, y = promote("logaddexp2", (x, y), True)
    ln2 = math.log(2)
    natural = derivative_rules.log_add_exp()(with_real(lax.mul, x, ln2), with_real(lax.mul, y, ln2))
    return with_real(lax.div, natural, ln2)


def _ufunc(function, nin, name, what, identity=None, reduce=None, accumulate=None, at=None, *, example) -> ufunc:
    made = ufunc(
        function,
        nin,
        1,
        name=name,
        identity=identity,
        call=function,
        reduce=_reduce_with(reduce) if reduce else None,
        accumulate=_accumulate_with(accumulate) if accumulate else None,
        at=_at_with(at) if at else None,
    )
    made.__doc__ = with_example(documentation(what, nin), example)
    return made


_and, _orr, _xor = (
    logical2(n, p) for n, p in (("logical_and", ops.and_p), ("logical_or", ops.or_p), ("logical_xor", ops.xor_p))
)

add: Final = _ufunc(
    operators.add,
    2,
    "add",
    "sum",
    0,
    "sum",
    "cumsum",
    "add",
    example="""
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.add(x, jnp.array([10, 20]))
    Array([[11, 22],
           [13, 24]], dtype=int32)
    >>> jnp.add.reduce(x, axis=0)
    Array([4, 6], dtype=int32)
    >>> jnp.add.at(x, (0, 1), 100, inplace=False)
    Array([[  1, 102],
           [  3,   4]], dtype=int32)
    """,
)
subtract: Final = _ufunc(
    operators.subtract,
    2,
    "subtract",
    "difference",
    at="subtract",
    example="""
    >>> jnp.subtract(jnp.array([[5], [6]]), jnp.array([1, 2]))
    Array([[4, 3],
           [5, 4]], dtype=int32)
    """,
)
multiply: Final = _ufunc(
    operators.multiply,
    2,
    "multiply",
    "product",
    1,
    "prod",
    "cumprod",
    "multiply",
    example="""
    >>> jnp.multiply(jnp.array([1, 2]), 3)
    Array([3, 6], dtype=int32)
    >>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """,
)
maximum: Final = _ufunc(
    _max,
    2,
    "maximum",
    "maximum, NaN if an operand is NaN",
    reduce="max",
    at="max",
    example="""
    >>> jnp.maximum(jnp.array([1., jnp.nan, 3.]), 2.)
    Array([ 2., nan,  3.], dtype=float32)
    """,
)
minimum: Final = _ufunc(
    _min,
    2,
    "minimum",
    "minimum, NaN if an operand is NaN",
    reduce="min",
    at="min",
    example="""
    >>> jnp.minimum(jnp.array([1., jnp.nan, 3.]), 2.)
    Array([ 1., nan,  2.], dtype=float32)
    """,
)
negative: Final = _ufunc(
    operators.negative,
    1,
    "negative",
    "``-x``",
    example="""
    >>> jnp.negative(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """,
)
bitwise_and: Final = _ufunc(
    operators.bitwise_and,
    2,
    "bitwise_and",
    "AND of bits or bools",
    -1,
    example="""
    >>> jnp.bitwise_and(jnp.array([0b1100]), 0b1010)
    Array([8], dtype=int32)
    """,
)
bitwise_or: Final = _ufunc(
    operators.bitwise_or,
    2,
    "bitwise_or",
    "OR of bits or bools",
    0,
    example="""
    >>> jnp.bitwise_or(jnp.array([0b1100]), 0b1010)
    Array([14], dtype=int32)
    """,
)
bitwise_xor: Final = _ufunc(
    operators.bitwise_xor,
    2,
    "bitwise_xor",
    "exclusive OR of bits or bools",
    0,
    example="""
    >>> jnp.bitwise_xor(jnp.array([0b1100]), 0b1010)
    Array([6], dtype=int32)
    >>> jnp.bitwise_xor.reduce(jnp.array([1, 2, 4]))
    Array(7, dtype=int32)
    """,
)
logical_and: Final = _ufunc(
    _and,
    2,
    "logical_and",
    "``x1 and x2`` of booleans",
    True,
    "all",
    example="""
    >>> jnp.logical_and(jnp.array([True, True]), jnp.array([0, 5]))
    Array([False,  True], dtype=bool)
    """,
)
logical_or: Final = _ufunc(
    _orr,
    2,
    "logical_or",
    "``x1 or x2`` of booleans",
    False,
    "any",
    example="""
    >>> jnp.logical_or(jnp.array([False, False]), jnp.array([0, 5]))
    Array([False,  True], dtype=bool)
    """,
)
logical_xor: Final = _ufunc(
    _xor,
    2,
    "logical_xor",
    "exclusive or of booleans",
    False,
    example="""
    >>> jnp.logical_xor(jnp.array([True, False]), jnp.array([True, True]))
    Array([False,  True], dtype=bool)
    """,
)
logaddexp: Final = _ufunc(
    log_add_exp,
    2,
    "logaddexp",
    "``log(exp(x1) + exp(x2))``",
    -np.inf,
    example="""
    >>> jnp.logaddexp(jnp.array([1000., 0.]), jnp.array([1000., -jnp.inf]))
    Array([1000.6932,    0.    ], dtype=float32)
    """,
)
logaddexp2: Final = _ufunc(
    log_add_exp2,
    2,
    "logaddexp2",
    "``log2(2**x1 + 2**x2)``",
    -np.inf,
    example="""
    >>> jnp.logaddexp2(jnp.array([3.]), jnp.array([3.]))
    Array([4.], dtype=float32)
    """,
)


# ---- composed functions: powers, logarithms, angles ------------------------------------------------------------


def _constant(x, value):
    return ops.scalar_like(x, value)


def _of_floats(name: str, what: str, formula: Callable, example: str) -> Callable:
    """The function of one operand, as floats, that is one program."""

    def function(x, /):
        return formula(inexact(name, x))

    return one_program(documented(function, name, what, __name__, example))


log10: Final = _of_floats(
    "log10",
    "logarithm to base 10",
    lambda x: with_real(lax.div, lax.log(x), math.log(10)),
    example="""
    >>> jnp.log10(jnp.array([1., 1000.]))
    Array([0., 3.], dtype=float32)
    """,
)
deg2rad: Final = _of_floats(
    "deg2rad",
    "conversion from degrees to radians",
    lambda x: lax.mul(x, _constant(x, math.pi / 180)),
    example="""
    >>> jnp.deg2rad(jnp.array([0., 90., 180.]))
    Array([0.       , 1.5707964, 3.1415927], dtype=float32)
    """,
)
rad2deg: Final = _of_floats(
    "rad2deg",
    "conversion from radians to degrees",
    lambda x: lax.mul(x, _constant(x, 180 / math.pi)),
    example="""
    >>> jnp.rad2deg(jnp.pi)
    Array(180., dtype=float32, weak_type=True)
    """,
)


def square(x: ArrayLike, /) -> Array:
    """Elementwise ``x * x``.

    Examples:

      >>> jnp.square(jnp.array([3, -2]))
      Array([9, 4], dtype=int32)
    """
    x = operand("square", x)
    if aval_of(x).dtype == _BOOL:
        x = lax.convert_element_type(x, np.int32)
    return ops.square_p.bind(x)


def reciprocal(x: ArrayLike, /) -> Any:
    """Elementwise ``1 / x``, as floats.

    Examples:

      >>> jnp.reciprocal(jnp.array([2., 0.]))
      Array([0.5, inf], dtype=float32)
    """
    return lax.reciprocal(inexact("reciprocal", x))


@one_program
def float_power(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Elementwise ``x ** y``, as floats.

    Args:
      x, y: arrays or scalars, broadcast against each other. Integers become floats.

    Examples:

      >>> jnp.float_power(jnp.array([2, 4]), -1)
      Array([0.5 , 0.25], dtype=float32)
    """
    x, y = promote("float_power", (x, y), True)
    return ops.pow_p.bind(x, y)


@one_program
def hypot(x1: Array, x2: Array, /) -> Array:
    """Elementwise ``sqrt(x1**2 + x2**2)`` without overflow.

    Args:
      x1, x2: real arrays or scalars, broadcast against each other. Integers become floats.

    Raises:
      ValueError: an operand is complex.

    Examples:

      >>> jnp.hypot(jnp.array([3., 5.]), jnp.array([4., 12.]))
      Array([ 5.      , 12.999999], dtype=float32)
    """
    x, y = promote("hypot", (x1, x2), True)
    if dtypes.is_complex(aval_of(x).dtype):
        raise ValueError(f"jnp.hypot takes real numbers, got {aval_of(x).dtype}; pass the absolute values")
    x, y = lax.abs(x), lax.abs(y)
    x, y = _full_pair(x, y)
    high, low = lax.max(x, y), lax.min(x, y)
    zero, one = _constant(high, 0.0), _constant(high, 1.0)
    at_zero = lax.eq(high, zero)
    ratio = lax.div(low, operators._select(at_zero, one, high))
    out = operators._select(at_zero, zero, lax.mul(high, lax.sqrt(lax.add(lax.square(ratio), one))))
    infinite = lax.bitwise_or(_is_inf(x), _is_inf(y))
    return operators._select(infinite, _constant(high, np.inf), out)


def _full_pair(x, y):
    return broadcast("function", (x, y), scalars=False)


def _is_inf(x):
    return lax.eq(lax.abs(x), _constant(x, np.inf))


def fabs(x: ArrayLike, /) -> Any:
    """Return the absolute value of each element as a float.

    Args:
      x: array of integers, booleans or floats.

    Returns:
      An array of the shape of `x`. Integers become floats of the default dtype.

    Raises:
      TypeError: `x` is complex; `abs` takes complex numbers.

    Examples:

      >>> jnp.fabs(jnp.array([-1, 2]))
      Array([1., 2.], dtype=float32)
    """
    x = inexact("fabs", x)
    if dtypes.is_complex(aval_of(x).dtype):
        raise TypeError(f"ufunc 'fabs' does not support complex dtypes, got {aval_of(x).dtype}")
    return lax.abs(x)


@one_program
def sinc(x: ArrayLike, /) -> Array:
    """Elementwise ``sin(pi x) / (pi x)``, 1 at 0, where all derivatives are correct, too.

    Examples:

      >>> jnp.sinc(jnp.array([0., 0.5])).round(3)
      Array([1.   , 0.637], dtype=float32)
    """
    return derivative_rules.sinc()(inexact("sinc", x))


# ---- composed functions: signs, rounding, parts of numbers --------------------------------------------------------


def sign(x: Array, /) -> Array:
    """Elementwise sign: -1, 0 or 1; nan for nan; ``x / abs(x)`` for complex numbers.

    Examples:

      >>> jnp.sign(jnp.array([-3., 0., 2.]))
      Array([-1.,  0.,  1.], dtype=float32)
    """
    return lax.sign(operand("sign", x))


def _is_whole(x) -> bool:
    dtype = aval_of(x).dtype
    return dtypes.is_integer(dtype) or dtype == _BOOL


def floor(x: ArrayLike, /) -> Array:
    """Elementwise largest integer not above `x`, in the dtype of `x`.

    Examples:

      >>> jnp.floor(jnp.array([1.8, -1.2]))
      Array([ 1., -2.], dtype=float32)
    """
    x = operand("floor", x)
    return lax.asarray(x) if _is_whole(x) else lax.floor(x)


def ceil(x: Array, /) -> Array:
    """Elementwise smallest integer not below `x`, in the dtype of `x`.

    Examples:

      >>> jnp.ceil(jnp.array([1.2, -1.2, 3.]))
      Array([ 2., -1.,  3.], dtype=float32)
    """
    x = operand("ceil", x)
    return lax.asarray(x) if _is_whole(x) else lax.ceil(x)


@one_program
def trunc(x: ArrayLike) -> Any:
    """Elementwise integer part of `x`, in the dtype of `x`.

    Examples:

      >>> jnp.trunc(jnp.array([1.8, -1.8]))
      Array([ 1., -1.], dtype=float32)
    """
    x = operand("trunc", x)
    if _is_whole(x):
        return lax.asarray(x)
    return operators._select(lax.lt(x, _constant(x, 0.0)), lax.ceil(x), lax.floor(x))


_EVEN = ops.RoundingMethod.TO_NEAREST_EVEN


def _by_part(function: Callable, x):
    if dtypes.is_complex(aval_of(x).dtype):
        return lax.complex(function(lax.real(x)), function(lax.imag(x)))
    return function(x)


@one_program
def rint(x: ArrayLike, /) -> Any:
    """Elementwise nearest integer, halves to even, as a float.

    Examples:

      >>> jnp.rint(jnp.array([0.5, 1.5, -0.7]))
      Array([ 0.,  2., -1.], dtype=float32)
    """
    return _by_part(lambda v: lax.round(v, _EVEN), inexact("rint", x))


@one_program(static=("decimals", "out"))
def round(a: ArrayLike, decimals: int = 0, out: Any = None) -> Array:
    """Elementwise rounding to `decimals` digits after the point, halves to even.

    Args:
      a: array or scalar.
      decimals: the number of digits; negative ones round to tens, hundreds... (floats only).
      out: must be None.

    Examples:

      >>> jnp.round(jnp.array([1.25, 3.75]), 1)
      Array([1.2, 3.8], dtype=float32)

      >>> jnp.around(jnp.array([0.5, 1.5, 2.675]))
      Array([0., 2., 3.], dtype=float32)
      >>> jnp.around(jnp.array([0.126, 2.674]), decimals=2)
      Array([0.13     , 2.6699998], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError("jnp.round: out is not supported, as arrays are immutable; use what is returned")
    x = operand("round", a)
    dtype = aval_of(x).dtype
    if _is_whole(x):
        if decimals < 0:
            raise NotImplementedError(f"jnp.round of integers to {decimals=} is not supported; make them floats")
        return lax.asarray(x)
    if decimals == 0:
        return _by_part(lambda v: lax.round(v, _EVEN), x)
    # Powers of ten and products of float16 leave its range soon.
    work = np.dtype(np.float32) if dtypes.itemsize_bits(dtype) <= 16 else None

    if builtins.abs(decimals) > math.log10(dtypes.finfo(work or dtypes.to_real_dtype(dtype)).max):
        # Numbers of this dtype have no digit there.
        return lax.asarray(x) if decimals > 0 else lax.mul(x, _constant(x, 0.0))

    def one(v):
        kind, weak = aval_of(v).dtype, aval_of(v).weak_type
        v = v if work is None else lax.convert_to(v, work, False)
        factor = _constant(v, float(10 ** builtins.abs(decimals)))
        scale, unscale = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
        out = unscale(lax.round(scale(v, factor), _EVEN), factor)
        return out if work is None else lax.convert_to(out, kind, weak)

    return _by_part(one, x)


@one_program
def signbit(x: Array, /) -> Array:
    """Return whether each element has its sign bit set. Negative numbers, -0.0 and some NaNs have it.

    Args:
      x: array of booleans, integers or floats.

    Returns:
      A boolean array of the shape of `x`.

    Raises:
      ValueError: the dtype of `x` has no sign bit here, such as a complex one.

    Examples:

      >>> jnp.signbit(jnp.array([-3., -0., 0.]))
      Array([ True,  True, False], dtype=bool)
    """
    (x,) = promote_dtypes("signbit", (x,))
    dtype = aval_of(x).dtype
    if dtype == _BOOL or dtypes.is_unsigned_integer(dtype):
        return lax.full_like(x, False, np.dtype(bool))
    if dtypes.is_integer(dtype):
        return lax.lt(x, _constant(x, 0))
    if not dtypes.is_floating(dtype):
        raise ValueError(public(f"jax.numpy.signbit is not well defined for {dtype}"))
    bits = dtypes.itemsize_bits(dtype)
    if bits < 8:
        x, bits = lax.convert_to(x, np.dtype(np.float32), False), 32
    whole = lax.bitcast_convert_type(x, np.dtype(f"int{bits}"))
    return lax.lt(whole, _constant(whole, 0))


@one_program
def copysign(x1: Array, x2: Array, /) -> Array:
    """Elementwise magnitude of `x1` with the sign of `x2`.

    Args:
      x1, x2: real arrays or scalars, broadcast against each other. Integers become floats.

    Raises:
      TypeError: an operand is complex.

    Examples:

      >>> jnp.copysign(jnp.array([1., -2.]), jnp.array([-0., 1.]))
      Array([-1.,  2.], dtype=float32)
    """
    x, y = promote("copysign", (x1, x2), True)
    if dtypes.is_complex(aval_of(x).dtype):
        raise TypeError(f"copysign does not support complex-valued inputs, got {aval_of(x).dtype}")
    size = lax.abs(x)
    return operators._select(signbit(y), lax.neg(size), size)


@one_program
def heaviside(x1: ArrayLike, x2: float, /) -> Array:
    """Elementwise step: 0 where `x1` is negative, `x2` where it is 0, 1 where it is positive.

    Args:
      x1: real array or scalar; where it is nan, the result is nan.
      x2: the result where `x1` is 0; array or scalar, broadcast against `x1`.

    Returns:
      An array of floats: integers become floats.

    Raises:
      TypeError: an operand is complex.

    Examples:

      >>> jnp.heaviside(jnp.array([-1., 0., 2.]), 0.5)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = promote("heaviside", (x1, x2), True)
    weak = aval_of(x1).weak_type and aval_of(x2).weak_type
    zero, one = _constant(x, 0.0), _constant(x, 1.0)
    x, y = _full_pair(x, y)
    out = operators._select(lax.lt(x, zero), zero, operators._select(lax.gt(x, zero), one, y))
    return lax.convert_to(operators._select(lax.ne(x, x), x, out), aval_of(out).dtype, weak)


@one_program(static=("copy",), arrays=("posinf", "neginf"))
def nan_to_num(x: ArrayLike, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace nan and infinities.

    Args:
      x: array or scalar.
      copy: has no effect; arrays are immutable.
      nan: the replacement of nan.
      posinf, neginf: the replacements of infinities; default: the largest and least finite values.

    Examples:

      >>> jnp.nan_to_num(jnp.array([1., jnp.nan, jnp.inf]), nan=0., posinf=9.)
      Array([1., 0., 9.], dtype=float32)
    """
    del copy
    x = operand("nan_to_num", x)
    dtype = aval_of(x).dtype
    if not dtypes.is_inexact(dtype):
        return lax.asarray(x)
    if dtypes.is_complex(dtype):
        part = lambda v: nan_to_num(v, nan=nan, posinf=posinf, neginf=neginf)
        return lax.complex(part(lax.real(x)), part(lax.imag(x)))
    info = dtypes.finfo(dtype)
    low = info.min if neginf is None else neginf
    high = info.max if posinf is None else posinf
    cast = lambda v: lax.convert_element_type(v, dtype) if hasattr(v, "aval") else np.asarray(v).astype(dtype)
    out = choose_where(lax.ne(x, x), cast(nan), x)
    out = choose_where(lax.eq(x, _constant(x, np.inf)), cast(high), out)
    return choose_where(lax.eq(x, _constant(x, -np.inf)), cast(low), out)


def _float_bits(dtype) -> tuple[int, int, int, np.dtype]:
    """(bits of the significand that are stored, bias of the exponent, its bits, integer dtype of the whole)."""
    info = dtypes.finfo(dtype)
    bits = dtypes.itemsize_bits(dtype)
    exponent = bits - 1 - info.nmant
    return info.nmant, 2 ** (exponent - 1) - 1, exponent, np.dtype(f"int{bits}")


_PLAIN_FLOATS = frozenset(np.dtype(d) for d in (np.float16, dtypes.bfloat16, np.float32, np.float64))


@one_program
def frexp(x: ArrayLike, /) -> tuple[Array, ...]:
    """(significand, exponent) with ``x = significand * 2**exponent`` and significand in [0.5, 1); 0 for 0.

    Examples:

      >>> mantissa, exponent = jnp.frexp(jnp.array([8., 0.75]))
      >>> mantissa
      Array([0.5 , 0.75], dtype=float32)
      >>> exponent
      Array([4, 0], dtype=int32)
    """
    x = inexact("frexp", x)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        raise TypeError(f"frexp does not support complex-valued inputs, got {dtype}")
    if dtype not in _PLAIN_FLOATS:
        m, e = frexp(lax.convert_to(x, np.dtype(np.float32), False))
        return lax.convert_to(m, dtype, False), e
    mant, bias, exponent_bits, whole = _float_bits(dtype)
    tiny = lax.lt(lax.abs(x), _constant(x, float(dtypes.finfo(dtype).smallest_normal)))
    lift = mant + 2
    # Multiplication by a power of two makes subnormal numbers normal.
    y = operators._select(tiny, lax.mul(x, _constant(x, float(2**lift))), x) if mant + 2 < bias else x
    i = lax.bitcast_convert_type(lax.convert_to(y, dtype, False), whole)
    mask = (1 << exponent_bits) - 1
    make = whole.type
    e = lax.bitwise_and(lax.shift_right_logical(i, make(mant)), make(mask))
    e = lax.sub(lax.convert_to(e, np.dtype(np.int32), False), np.int32(bias - 1))
    m = ldexp(y, lax.neg(e))  # a product, which has a derivative
    e = operators._select(tiny, lax.sub(e, np.int32(lift)), e)
    special = lax.bitwise_or(lax.bitwise_not(lax.is_finite(x)), lax.eq(x, _constant(x, 0.0)))
    return operators._select(special, x, m), operators._select(special, np.int32(0), e)


@one_program
def ldexp(x1: Array, x2: Array, /) -> Array:
    """Elementwise ``x1 * 2**x2`` with integers `x2`, without overflow in between.

    Args:
      x1: real array or scalar; integers become floats.
      x2: the exponents: array or scalar of integers, broadcast against `x1`.

    Returns:
      An array of floats, of the dtype of `x1` if that is one.

    Raises:
      ValueError: `x2` is not of an integer dtype, or `x1` is complex.

    Examples:

      >>> jnp.ldexp(jnp.array([0.5, 3.]), jnp.array([4, -1]))
      Array([8. , 1.5], dtype=float32)
    """
    x, n = operand("ldexp", x1), operand("ldexp", x2, 1)
    kind = aval_of(n).dtype
    if not (dtypes.is_integer(kind) or kind == _BOOL):
        raise ValueError(f"ldexp requires the second argument to be of integer type, got {kind}")
    x = inexact("ldexp", x)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        raise ValueError(f"ldexp not supported for complex input, got {dtype}")
    n = lax.convert_to(n, np.dtype(np.int32), False)
    x, n = broadcast("ldexp", (x, n))
    if dtype not in _PLAIN_FLOATS:
        return lax.mul(x, ops.exp2_p.bind(lax.convert_to(n, dtype, False)))
    mant, bias, _, whole = _float_bits(dtype)
    limit = 2 * (bias + mant) + 2
    n = lax.clamp(np.int32(-limit), n, np.int32(limit))
    # Each factor is a power of two that is a normal number; rounding happens at most once, in the last.
    for _ in range(-(-limit // (bias - 1))):
        part = lax.clamp(np.int32(1 - bias), n, np.int32(bias - 1))
        bits = lax.shift_left(lax.convert_to(lax.add(part, np.int32(bias)), whole, False), whole.type(mant))
        x = lax.mul(x, lax.bitcast_convert_type(bits, dtype))
        n = lax.sub(n, part)
    return x


@one_program(static=("out",))
def modf(x: ArrayLike, /, out: Any = None) -> Any:
    """(fractional part, integer part), both with the sign of `x`, as floats.

    Args:
      x: real array or scalar; integers become floats.
      out: must be None.

    Examples:

      >>> jnp.modf(jnp.array([1.5, -2.25]))
      (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    if out is not None:
        raise NotImplementedError("jnp.modf: out is not supported, as arrays are immutable; use what is returned")
    x = inexact("modf", x)
    whole = trunc(x)
    infinite = _is_inf(x)
    return operators._select(infinite, _constant(x, 0.0), lax.sub(x, whole)), whole


@one_program
def spacing(x: ArrayLike, /) -> Any:
    """Elementwise distance to the next float away from zero, with the sign of `x`.

    Examples:

      >>> jnp.spacing(jnp.float32(1))
      Array(1.1920929e-07, dtype=float32)
    """
    x = inexact("spacing", x)
    if dtypes.is_complex(aval_of(x).dtype):
        raise TypeError(f"spacing does not support complex-valued inputs, got {aval_of(x).dtype}")
    dtype = aval_of(x).dtype
    if dtype not in _PLAIN_FLOATS:
        away = operators._full(copysign(_constant(x, np.inf), x), aval_of(x).shape)
        return operators._select(_is_inf(x), _constant(x, np.nan), lax.sub(lax.nextafter(x, away), x))
    # Written as bits: where a gap is not a normal number, arithmetic would make it zero.
    mant, _, exponent_bits, whole = _float_bits(dtype)
    make = whole.type
    bits = lax.bitcast_convert_type(lax.convert_to(x, dtype, False), whole)
    exponent = lax.bitwise_and(lax.shift_right_logical(bits, make(mant)), make((1 << exponent_bits) - 1))
    exponent = lax.max(exponent, make(1))
    normal = lax.shift_left(lax.sub(exponent, make(mant)), make(mant))
    subnormal = lax.shift_left(make(1), lax.min(lax.sub(exponent, make(1)), make(mant)))
    size = operators._select(lax.gt(exponent, make(mant)), normal, subnormal)
    sign = lax.bitwise_and(bits, make(np.iinfo(whole).min))
    gap = lax.bitcast_convert_type(lax.bitwise_or(size, sign), dtype)
    return operators._select(lax.is_finite(x), gap, lax.sub(x, x))  # jax_debug_nans would report a constant NaN


@one_program
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Elementwise remainder with the sign of the dividend, as C's ``fmod``; an integer modulo 0 is 0.

    Args:
      x1, x2: real arrays or scalars, broadcast against each other; the dividend and the divisor.

    Raises:
      TypeError: an operand is complex.

    Examples:

      >>> jnp.fmod(jnp.array([7, -7]), 3)
      Array([ 1, -1], dtype=int32)
      >>> jnp.mod(jnp.array([7, -7]), 3)
      Array([1, 2], dtype=int32)
    """
    x, y, dtype = operators._as_numbers("fmod", x1, x2)
    if dtypes.is_integer(dtype):
        at_zero = lax.eq(y, _constant(y, 0))
        return lax.rem(x, operators._select(at_zero, _constant(y, 1), y))
    return lax.rem(x, y)


@one_program
def fmax(x1: ArrayLike, x2: ArrayLike) -> Any:
    """Elementwise maximum that ignores nan where only one operand is nan.

    Args:
      x1, x2: arrays or scalars, broadcast against each other.

    Examples:

      >>> jnp.fmax(jnp.array([1., jnp.nan]), 0.)
      Array([1., 0.], dtype=float32)
    """
    x, y = _full_pair(*promote("fmax", (x1, x2)))
    return _prefer(x, y, lax.max)


@one_program
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Elementwise minimum that ignores nan where only one operand is nan.

    Args:
      x1, x2: arrays or scalars, broadcast against each other.

    Examples:

      >>> jnp.fmin(jnp.array([1., jnp.nan]), 0.)
      Array([0., 0.], dtype=float32)
    """
    x, y = _full_pair(*promote("fmin", (x1, x2)))
    return _prefer(x, y, lax.min)


def _prefer(x, y, choose):
    out = choose(x, y)
    if not dtypes.is_inexact(aval_of(x).dtype):
        return out
    return operators._select(lax.ne(x, x), y, operators._select(lax.ne(y, y), x, out))


@one_program
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Elementwise greatest common divisor of integers; not negative.

    Args:
      x1, x2: arrays or scalars of integers, broadcast against each other.

    Raises:
      ValueError: an operand is not of an integer dtype.

    Examples:

      >>> jnp.gcd(jnp.array([12, 18]), 8)
      Array([4, 2], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    if dtypes.is_signed_integer(aval_of(x).dtype):
        x, y = lax.abs(x), lax.abs(y)
    zero = _constant(x, 0)

    def step(pair):
        a, b = pair
        more = lax.ne(b, zero)
        safe = operators._select(more, b, _constant(b, 1))
        return operators._select(more, b, a), operators._select(more, lax.rem(a, safe), zero)

    weak = aval_of(x).weak_type
    x, y = (lax.convert_to(v, aval_of(v).dtype, False) for v in (x, y))
    found = lax.while_loop(lambda pair: any_(lax.ne(pair[1], zero)), step, (x, y))[0]
    return lax.convert_to(found, aval_of(found).dtype, weak)


@one_program
def lcm(x1: ArrayLike, x2: ArrayLike) -> Any:
    """Elementwise least common multiple of integers; not negative.

    Args:
      x1, x2: arrays or scalars of integers, broadcast against each other.

    Raises:
      ValueError: an operand is not of an integer dtype.

    Examples:

      >>> jnp.lcm(jnp.array([4, 6]), 10)
      Array([20, 30], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    if dtypes.is_signed_integer(aval_of(x).dtype):
        x, y = lax.abs(x), lax.abs(y)
    divisor = gcd(x, y)
    one = _constant(divisor, 1)
    at_zero = lax.eq(divisor, _constant(divisor, 0))
    return lax.mul(lax.div(x, operators._select(at_zero, one, divisor)), y)


def _integers(name, x1, x2):
    x, y = promote(name, (x1, x2))
    if not dtypes.is_integer(aval_of(x).dtype):
        raise ValueError(public(f"Arguments to jax.numpy.{name} must be integers."))
    return _full_pair(x, y)


def bitwise_count(x: ArrayLike, /) -> Any:
    """Elementwise number of bits set in the absolute value, as uint8.

    Examples:

      >>> jnp.bitwise_count(jnp.array([0, 1, 7, 255]))
      Array([0, 1, 3, 8], dtype=uint8)
    """
    x = operand("bitwise_count", x)
    dtype = aval_of(x).dtype
    if dtype == _BOOL:
        return lax.convert_element_type(x, np.uint8)
    if dtypes.is_signed_integer(dtype):
        x = lax.abs(x)
    return lax.convert_element_type(lax.population_count(x), np.uint8)


# ---- complex numbers ------------------------------------------------------------------------------------------------


def real(val: Array, /) -> Array:
    """Elementwise real part.

    Examples:

      >>> jnp.real(jnp.array([1 + 2j, 3]))
      Array([1., 3.], dtype=float32)
    """
    x = operand("real", val)
    return lax.real(x) if dtypes.is_complex(aval_of(x).dtype) else lax.asarray(x)


def imag(val: ArrayLike, /) -> Array:
    """Elementwise imaginary part; zeros for real numbers.

    Examples:

      >>> jnp.imag(jnp.array([1 + 2j, 3]))
      Array([2., 0.], dtype=float32)
    """
    x = operand("imag", val)
    return lax.imag(x) if dtypes.is_complex(aval_of(x).dtype) else lax.full_like(x, 0)


def conjugate(x: Array, /) -> Array:
    """Elementwise complex conjugate; real numbers are unchanged.

    Examples:

      >>> jnp.conj(jnp.array([1 + 2j, 3.]))
      Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    x = operand("conjugate", x)
    return lax.conj(x) if dtypes.is_complex(aval_of(x).dtype) else lax.asarray(x)


@one_program(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Any:
    """Elementwise angle of complex numbers, in radians, or with `deg` in degrees.

    Args:
      z: array or scalar. The angle of a real number is 0, or pi if it is negative.
      deg: return degrees; default: radians.

    Returns:
      An array of floats, of the shape of `z`.

    Examples:

      >>> z = jnp.array([1, 1j, -1])
      >>> jnp.angle(z, deg=True)
      Array([  0.,  90., 180.], dtype=float32)
    """
    z = operand("angle", z)
    if not dtypes.is_complex(aval_of(z).dtype):
        z = inexact("angle", z)
        re, im = z, lax.full_like(z, 0)
    else:
        re, im = lax.real(z), lax.imag(z)
    out = lax.atan2(im, re)
    return rad2deg(out) if deg else out
