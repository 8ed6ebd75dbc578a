"""Arithmetic of arrays: the operators `x + y`, `x // y`, `x ** y`, `x < y`..., with promotion.

The functions are the ones that `bedrax.numpy` exports as ufuncs; the operators, defined for all
arrays and tracers, call them. An operator defers (`NotImplemented`) to operands of types
that are not arrays or scalars, and refuses lists, tuples, dictionaries and sets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from bedrax.core import array, blame, dims, dtypes, source
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.core.tracing import Primitive, binary, unary
from bedrax.core.typing import ArrayLike, F
from bedrax.lax import lattice
from bedrax.lax.primitives import elementwise as ops
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.conversions import asarray, convert_to
from bedrax.lax.primitives.shaping import broadcast_in_dim
from bedrax.lax.promotion import broadcast, inexact_pair_or_none, operand, pair_or_none, promote_pair, together

_BOOL = dtypes.bool_dtype
_BOOLS = frozenset([_BOOL])  # a look-up is faster than a comparison of dtypes
_COMPLEX = frozenset(dtypes.complex_dtypes)


# ---- makers: a primitive as a function that promotes ------------------------------------------------


def documentation(what: str, count: int) -> str:
    """The docstring of the elementwise function of `count` operands that computes `what`."""
    given = "x: array or scalar." if count == 1 else "x1, x2: arrays or scalars, broadcast against each other."
    return f"Elementwise {what}.\n\nArgs:\n  {given}\n"


def documented(function: F, name: str, what: str, module: str = __name__, example: str = "") -> F:
    """Make `function` the public elementwise function `name` of `module`. `what` describes its result."""
    return named(function, name, module, documentation(what, function.__code__.co_argcount), example)


class UnaryUfunc(Protocol):
    """A function of one operand, by position."""

    def __call__(self, x: ArrayLike, /) -> Array:
        """Call the function."""
        ...


class BinaryUfunc(Protocol):
    """A function of two operands, by position."""

    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array:
        """Call the function."""
        ...


def with_real(operation: Callable[..., Any], x: ArrayLike, number: float) -> Any:
    """The product or quotient with a real number. A complex one would turn infinite parts of `x` into NaN."""
    if not dtypes.is_complex(aval_of(x).dtype):
        return operation(x, ops.scalar_like(x, number))
    return ops.complex(*(operation(part, ops.scalar_like(part, number)) for part in (ops.real(x), ops.imag(x))))


def numeric2(name: str, prim: Primitive, what: str = "", example: str = "") -> BinaryUfunc:
    """A function of two operands, converted to their common dtype and shape."""
    bind = binary(prim)

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        a, b = pair_or_none(name, x, y)
        return whole(x, y) if b is None else bind(a, b)

    public = documented(function, name, what, example=example)
    whole = together(public)
    return public


def inexact2(name: str, prim: Primitive, what: str = "", example: str = "") -> BinaryUfunc:
    """The same for operations on floats and complex numbers: integers become floats."""
    bind = binary(prim)

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        a, b = inexact_pair_or_none(name, x, y)
        return whole(x, y) if b is None else bind(a, b)

    public = documented(function, name, what, example=example)
    whole = together(public)
    return public


def _with_bool(name: str, prim: Primitive, bool_prim: Primitive, what: str, example: str = "") -> BinaryUfunc:
    bind, on_bool = binary(prim), binary(bool_prim)

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        a, b = pair_or_none(name, x, y)
        if b is None:
            return whole(x, y)
        if (getattr(a, "dtype", None) or aval_of(a).dtype) in _BOOLS:
            return on_bool(a, b)
        return bind(a, b)

    public = documented(function, name, what, example=example)
    whole = together(public)
    return public


# ---- arithmetic --------------------------------------------------------------------------------------

add: BinaryUfunc = _with_bool("add", ops.add_p, ops.or_p, 'sum; "or" of bools')
multiply: BinaryUfunc = _with_bool("multiply", ops.mul_p, ops.and_p, 'product; "and" of bools')
subtract: BinaryUfunc = numeric2("subtract", ops.sub_p, "difference")
true_divide: BinaryUfunc = inexact2(
    "true_divide",
    ops.div_p,
    "quotient, as floats",
    example="""
    >>> jnp.divide(jnp.array([1, 2]), jnp.array([2, 0]))
    Array([0.5, inf], dtype=float32)
    """,
)


def _negative(x, y):
    """Whether exactly one of two numbers is below zero."""
    zero = ops.scalar_like(x, 0)
    return ops.ne(ops.lt(x, zero), ops.lt(y, zero))


def _as_numbers(name: str, x, y):
    """Promoted operands, bools as the smallest integers that hold the result."""
    x, y = promote_pair(name, x, y)
    dtype = aval_of(x).dtype
    if dtype == _BOOL:
        x, y = promote_pair(name, _convert(x, np.int32), _convert(y, np.int32))
        dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        raise TypeError(f"jnp.{name} is not defined for complex numbers, got {dtype}")
    return x, y, dtype


def _convert(x, dtype):
    return convert_to(x, dtypes.canonicalize_dtype(dtype), False)


def _select(which, on_true, on_false):
    """`select` where some operands have rank 0."""
    shape = aval_of(which).shape
    if not shape:
        shape = aval_of(on_true).shape or aval_of(on_false).shape
    return ops.select_n_p.bind(which, _full(on_false, shape), _full(on_true, shape))


def _full(x, shape):
    if not shape or aval_of(x).shape:
        return x
    return broadcast_in_dim(x, shape, ())


@one_program
def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The largest whole number not above ``x / y``, in the common dtype.

    Args:
      x, y: real arrays or scalars, broadcast against each other. An integer divided by 0 has no defined result.

    Raises:
      TypeError: an operand is complex.

    Examples:

      >>> jnp.floor_divide(jnp.array([7, -7]), 2)
      Array([ 3, -4], dtype=int32)
    """
    x, y, dtype = _as_numbers("floor_divide", x, y)
    if dtypes.is_unsigned_integer(dtype):
        return ops.div(x, y)
    if dtypes.is_integer(dtype):
        quotient = ops.div(x, y)
        zero = ops.scalar_like(x, 0)
        inexact = ops.ne(ops.rem(x, y), zero)
        down = ops.bitwise_and(ops.ne(ops.sign(x), ops.sign(y)), inexact)
        return _select(down, ops.sub(quotient, ops.scalar_like(quotient, 1)), quotient)
    return float_divmod(x, y)[0]


def float_divmod(x: np.generic, y: np.generic) -> tuple[Array, ...]:
    """(floor of the quotient, remainder of the divisor's sign) of promoted floats.

    The quotient is derived from the remainder, which is exact, so that ``q * y + r`` is near `x` even
    where ``x / y`` would be rounded up to a whole number.
    """
    rem = ops.rem(x, y)
    zero, one = ops.scalar_like(rem, 0.0), ops.scalar_like(rem, 1.0)
    wrong = ops.bitwise_and(ops.ne(rem, zero), _negative(rem, y))
    quotient = ops.div(ops.sub(x, rem), y)
    quotient = _select(wrong, ops.sub(quotient, one), quotient)
    at_zero = ops.eq(y, ops.scalar_like(y, 0.0))
    quotient = _select(at_zero, ops.div(x, y), quotient)
    # The derivative of the rounded quotient is zero, also of the one by zero.
    quotient = ops.round(quotient, ops.RoundingMethod.AWAY_FROM_ZERO)
    return quotient, _select(wrong, ops.add(rem, y), rem)


@one_program
def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x - y * floor(x / y)``: the remainder with the sign of the divisor. An integer modulo 0 is 0.

    Args:
      x, y: real arrays or scalars, broadcast against each other; the dividend and the divisor.

    Raises:
      TypeError: an operand is complex.

    Examples:

      >>> jnp.mod(jnp.array([7, -7]), 3)
      Array([1, 2], dtype=int32)
    """
    x, y, dtype = _as_numbers("remainder", x, y)
    zero = ops.scalar_like(x, 0)
    if dtypes.is_integer(dtype):
        at_zero = ops.eq(y, ops.scalar_like(y, 0))
        y = _select(at_zero, ops.scalar_like(y, 1), y)
        rem = ops.rem(x, y)
        if dtypes.is_unsigned_integer(dtype):
            return rem
    else:
        rem = ops.rem(x, y)
    wrong = ops.bitwise_and(ops.ne(rem, zero), _negative(rem, y))
    return _select(wrong, ops.add(rem, y), rem)


@one_program
def divmod_(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """(`floor_divide(x, y)`, `remainder(x, y)`).

    Args:
      x, y: real arrays or scalars, broadcast against each other; the dividend and the divisor.

    Returns:
      A pair of arrays of the common dtype.

    Raises:
      TypeError: an operand is complex.

    Examples:

      >>> jnp.divmod(jnp.array([7, -7]), 3)
      (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x, y, dtype = _as_numbers("divmod", x, y)
    if dtypes.is_integer(dtype):
        return floor_divide(x, y), remainder(x, y)
    return float_divmod(x, y)


def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x ** y``. A Python integer `y` multiplies; integers to integer powers stay integers.

    Args:
      x, y: arrays or scalars, broadcast against each other; the base and the exponent.

    Raises:
      TypeError: an integer to a negative Python integer.

    Examples:

      >>> jnp.pow(jnp.array([2, 3]), 2)
      Array([4, 9], dtype=int32)
    """
    if type(y) is int or (type(y) is not bool and isinstance(y, (int, np.integer))):
        x = operand("power", x)
        dtype = aval_of(x).dtype
        if dtype == _BOOL:
            x = _convert(x, np.int32)
        if isinstance(x, Array) and (dtype != _BOOL):
            if type(y) is int or not isinstance(y, np.generic):
                return ops.integer_pow_p.bind(x, y=int(y))
    x, y = operand("power", x, 0), operand("power", y, 1)
    a, b = aval_of(x), aval_of(y)
    if dtypes.is_inexact(a.dtype) and dtypes.is_integer(b.dtype):
        if lattice.promote([a.dtype, b.dtype], [a.weak_type, b.weak_type])[0] == a.dtype:
            x, y = broadcast("power", (x, y))
            return ops.pow_p.bind(x, y)
    x, y = promote_pair("power", x, y)
    dtype = aval_of(x).dtype
    if dtype == _BOOL:
        x, y = _convert(x, np.int32), _convert(y, np.int32)
        dtype = aval_of(x).dtype
    if dtypes.is_inexact(dtype):
        return ops.pow_p.bind(x, y)
    return _integer_power(x, y, dtype)


def _integer_power(x, y, dtype):
    """Powers of integers by squaring: one step per bit of the exponent."""
    one = ops.scalar_like(x, 1)
    bit = ops.scalar_like(y, 1)
    out = one
    bits = dtypes.itemsize_bits(dtype) - dtypes.is_signed_integer(dtype)
    for i in range(bits):
        odd = ops.ne(ops.bitwise_and(y, bit), ops.scalar_like(y, 0))
        out = _select(odd, ops.mul(out, x), out)
        if i + 1 < bits:
            x = ops.mul(x, x)
            y = ops.shift_right_logical(y, bit)
    return out


negative: UnaryUfunc = named(
    unary(ops.neg_p, frozenset(dtypes.all_dtypes), functools.partial(operand, "negative")),
    "negative",
    __name__,
    "``-x``.",
)


def positive(x: ArrayLike, /) -> Array:
    """``+x``, which is `x`.

    Examples:

      >>> jnp.positive(jnp.array([1, -2]))
      Array([ 1, -2], dtype=int32)
    """
    return asarray(operand("positive", x))


_UNSIGNED = frozenset((*dtypes.unsigned_dtypes, _BOOL))
_abs, _not = ops.abs_p.bind, ops.not_p.bind


def absolute(x: ArrayLike, /) -> Array:
    """``abs(x)``; the magnitude of complex numbers.

    Examples:

      >>> jnp.abs(jnp.array([-2, 0, 3]))
      Array([2, 0, 3], dtype=int32)
      >>> jnp.abs(jnp.array([3 + 4j]))
      Array([5.], dtype=float32)
    """
    x = operand("absolute", x)
    if aval_of(x).dtype in _UNSIGNED:
        return positive(x)
    return _abs(x)


def invert(x: ArrayLike, /) -> Array:
    """``~x``: all bits inverted; "not" of bools.

    Examples:

      >>> jnp.bitwise_invert(jnp.array([0, 1], dtype=jnp.uint8))
      Array([255, 254], dtype=uint8)
    """
    return _not(operand("bitwise_not", x))


# ---- comparisons and bits -----------------------------------------------------------------------------


def _ordering(name: str, prim: Primitive, what: str, example: str) -> BinaryUfunc:
    """A comparison: complex numbers are ordered by real part, then by imaginary part."""
    bind = binary(prim)
    strict = binary({"ge": ops.gt_p, "le": ops.lt_p}.get(prim.name, prim))

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        a, b = pair_or_none(name, x, y)
        if b is None:
            return whole(x, y)
        if (getattr(a, "dtype", None) or aval_of(a).dtype) in _COMPLEX:
            first, second = (ops.real(a), ops.real(b)), (ops.imag(a), ops.imag(b))
            return _select(ops.eq(*first), bind(*second), strict(*first))
        return bind(a, b)

    public = documented(function, name, what, example=example)
    whole = together(public)
    return public


equal: BinaryUfunc = numeric2(
    "equal",
    ops.eq_p,
    "``x1 == x2``",
    example="""
    >>> jnp.equal(jnp.array([1, 2]), jnp.array([1., 3.]))
    Array([ True, False], dtype=bool)
    """,
)
not_equal: BinaryUfunc = numeric2(
    "not_equal",
    ops.ne_p,
    "``x1 != x2``",
    example="""
    >>> jnp.not_equal(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """,
)
less: BinaryUfunc = _ordering(
    "less",
    ops.lt_p,
    "``x1 < x2``",
    example="""
    >>> jnp.less(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """,
)
less_equal: BinaryUfunc = _ordering(
    "less_equal",
    ops.le_p,
    "``x1 <= x2``",
    example="""
    >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """,
)
greater: BinaryUfunc = _ordering(
    "greater",
    ops.gt_p,
    "``x1 > x2``",
    example="""
    >>> jnp.greater(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """,
)
greater_equal: BinaryUfunc = _ordering(
    "greater_equal",
    ops.ge_p,
    "``x1 >= x2``",
    example="""
    >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """,
)
bitwise_and: BinaryUfunc = numeric2("bitwise_and", ops.and_p, "AND of bits or bools")
bitwise_or: BinaryUfunc = numeric2("bitwise_or", ops.or_p, "OR of bits or bools")
bitwise_xor: BinaryUfunc = numeric2("bitwise_xor", ops.xor_p, "exclusive OR of bits or bools")
left_shift: BinaryUfunc = numeric2(
    "left_shift",
    ops.shift_left_p,
    "``x1 << x2``",
    example="""
    >>> jnp.bitwise_left_shift(jnp.array([1, 2, 3]), 4)
    Array([16, 32, 48], dtype=int32)
    """,
)


def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x >> y``: the sign of signed integers is kept.

    Args:
      x, y: arrays or scalars of integers, broadcast against each other; the bits and the distance.

    Raises:
      TypeError: an operand is not of an integer dtype.

    Examples:

      >>> jnp.bitwise_right_shift(jnp.array([16, -16]), 2)
      Array([ 4, -4], dtype=int32)
    """
    x, y = promote_pair("right_shift", x, y)
    if dtypes.is_unsigned_integer(aval_of(x).dtype):
        return ops.shift_right_logical_p.bind(x, y)
    return ops.shift_right_arithmetic_p.bind(x, y)


# ---- operators -----------------------------------------------------------------------------------------

_PLAIN = (Array, np.ndarray, np.generic, int, float, complex)


def accepts(other: Any) -> bool:
    """Whether an array combines with `other`; if not, an operator defers to the other operand."""
    return isinstance(other, _PLAIN) or hasattr(other, "__jax_array__") or dims.is_symbolic(other)


_CONTAINERS = (list, tuple, dict, set)
_known: set[type] = {int, float, complex, bool, np.ndarray}


def operator(function: Callable[..., Any], name: str, swapped: bool = False) -> Callable[..., Any]:
    """``x <op> y`` as a method of `x`, or if `swapped` of `y`."""

    def deferred(other):
        """`NotImplemented`; for a container a TypeError, as Python would call it unequal, or repeat a list."""
        if isinstance(other, _CONTAINERS):
            raise blame.not_an_array(other, f"the operator {name} of arrays")
        return NotImplemented

    # Entry points like `api_boundary`, without an additional frame.
    def method(self, other):
        if type(other) in _known or type(other) is type(self) or accepts(other):
            try:
                return function(self, other)
            except Exception as error:
                source.shorten(error)
                raise
        return deferred(other)

    def reflected(self, other):
        if type(other) in _known or type(other) is type(self) or accepts(other):
            try:
                return function(other, self)
            except Exception as error:
                source.shorten(error)
                raise
        return deferred(other)

    return named(reflected if swapped else method, name, __name__, f"`{function.__name__}` of arrays.")


_BINARY = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "truediv": true_divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "divmod": divmod_,
    "pow": power,
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": left_shift,
    "rshift": right_shift,
}
_COMPARISONS = {"eq": equal, "ne": not_equal, "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal}


def iterate(x: Any) -> Iterator[Any]:
    """The rows of an array, from one operation."""
    if not x.ndim:
        raise TypeError("iteration over a 0-d array")
    return iter(shaping.unstack(x, 0))


_UNARY = {"neg": negative, "pos": positive, "abs": absolute, "invert": invert}


def _methods() -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, function in _BINARY.items():
        out[f"__{name}__"] = operator(function, f"__{name}__")
        out[f"__r{name}__"] = operator(function, f"__r{name}__", True)
    for name, function in _COMPARISONS.items():
        out[f"__{name}__"] = operator(function, f"__{name}__")
    for name, function in _UNARY.items():
        out[f"__{name}__"] = function
    out["__iter__"] = iterate
    return out


array.install_methods(_methods())
