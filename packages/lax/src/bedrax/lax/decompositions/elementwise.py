"""Elementwise functions by arithmetic: powers, polynomials, logarithms, functions of complex numbers, and the high half
of a product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax import filling
from bedrax.lax.operators import with_real
from bedrax.lax.primitives import elementwise as p
from bedrax.lax.primitives.conversions import convert_to
from bedrax.lax.tables import decompositions

# ---- powers --------------------------------------------------------------------------------------


@decompositions.rule(p.integer_pow_p)
def _integer_pow(x, *, y):
    """The power by repeated squaring. Floats of fewer than 16 bits are computed in float32."""
    dtype = x.dtype
    if dtypes.is_floating(dtype) and dtypes.itemsize_bits(dtype) < 16:
        x = convert_to(x, np.dtype(np.float32))
    one = filling.full_like(x, 1)
    n, power, base = abs(y), None, x
    while n:
        if n & 1:
            power = base if power is None else p.mul(power, base)
        n >>= 1
        if n:
            base = p.square(base)
    power = one if power is None else power
    return convert_to(power if y >= 0 else p.div(one, power), dtype)


def power_of_integers(x: ArrayLike, n: ArrayLike) -> Any:
    """``x ** n`` for integer `n` of any dtype: floats by a power of floats, complex numbers by repeated squaring.

    A power of floats is one operation. Repeated squaring is a loop, whose condition a GPU sends to the host.
    """
    return (_complex_power if dtypes.is_complex(x.dtype) else _float_power)(x, n)


def _float_power(x, n):
    dtype = x.dtype
    work = np.dtype(np.float32) if dtypes.itemsize_bits(dtype) < 32 else dtype
    x = convert_to(x, work)
    power = p.pow(x, convert_to(n, work))
    if dtypes.itemsize_bits(n.dtype) > np.finfo(work).nmant + 1:
        # Large odd integers become even floats. So the sign of the power is computed from the integer.
        odd = p.ne(p.bitwise_and(n, p.scalar_like(n, 1)), p.scalar_like(n, 0))
        negative = p.bitwise_and(*_of_one_shape(p.lt(x, p.scalar_like(x, 0)), odd))
        power = p.select(negative, p.neg(p.abs(power)), power)
    return convert_to(power, dtype)


def _of_one_shape(*arrays):
    """The arrays, scalars among them broadcast to the shape of the others."""
    shape = next((a.shape for a in arrays if a.shape), ())
    return [a if a.shape or not shape else lax.broadcast(a, shape) for a in arrays]


def _complex_power(x, n):
    bits = max(dtypes.itemsize_bits(n.dtype), 8)
    unsigned = np.dtype(f"uint{bits}")
    x, n = _of_one_shape(x, n)
    negative = p.lt(n, p.scalar_like(n, 0))
    magnitude = convert_to(n, unsigned)
    magnitude = p.select(negative, p.neg(magnitude), magnitude)
    one = filling.full_like(x, 1)
    zero = np.zeros((), unsigned)

    def unfinished(state):
        return lax.reduce_or(p.ne(state[2], zero), tuple(range(len(x.shape))))

    def step(state):
        power, base, left = state
        odd = p.ne(p.bitwise_and(left, np.ones((), unsigned)), zero)
        return (
            p.select(odd, p.mul(power, base), power),
            p.mul(base, base),
            p.shift_right_logical(left, np.ones((), unsigned)),
        )

    power, _, _ = lax.while_loop(unfinished, step, (one, x, magnitude))
    return p.select(negative, p.div(one, power), power)


# ---- polynomials, and functions of one operand ----------------------------------------------------

_UNROLLED = 8  # the greatest number of coefficients that are evaluated without a loop


@decompositions.rule(p.polynomial_p)
def _polynomial(x, *coefficients, unroll=None):
    """By Horner's rule."""
    shape = next((s for s in (aval_of(v).shape for v in (x, *coefficients)) if s), ())
    spread = lambda v: v if aval_of(v).shape == shape else lax.broadcast_in_dim(v, shape, ())
    limit = _UNROLLED if unroll is None else unroll
    out = spread(coefficients[-1])
    if len(coefficients) <= max(limit, 1):
        for c in coefficients[-2::-1]:
            out = p.add_p.bind(p.mul_p.bind(out, x), c)
        return out
    if any(aval_of(c).shape for c in coefficients):
        coefficients = tuple(map(spread, coefficients))
    rows = lax.stack(coefficients[:-1], 0)
    step = lambda value, c: (p.add_p.bind(p.mul_p.bind(value, x), c), None)
    return lax.scan(step, out, rows, reverse=True, unroll=max(limit, 1))[0]


@decompositions.rule(p.one_minus_square_p)
def _one_minus_square(x):
    one = p.scalar_like(x, 1)
    return p.mul_p.bind(p.add_p.bind(one, x), p.sub_p.bind(one, x))


@decompositions.rule(p.log2_p)
def _log2(x, *, accuracy=None):
    return with_real(p.mul, p.log(x, accuracy=accuracy), 1 / math.log(2))


# ---- functions of complex numbers by functions of reals ---------------------------------------------------------------


def complex_exp2(x: ArrayLike, *, accuracy: Any = None) -> Any:
    """The power of 2 with complex exponents."""
    return p.exp(with_real(p.mul, x, math.log(2)), accuracy=accuracy)


def complex_square(x: ArrayLike) -> Any:
    """The square of complex numbers. Its real part ``(a - b) (a + b)`` has no difference of squares that overflow."""
    a, b = p.real(x), p.imag(x)
    product = p.mul(a, b)
    a, b = p.abs(a), p.abs(b)
    difference = p.sub(a, b)
    equal = p.eq(difference, p.scalar_like(a, 0))  # also where the sum overflows
    real = p.select(equal, difference, p.mul(difference, p.add(a, b)))
    return p.complex(real, p.add(product, product))


def complex_sin(x: ArrayLike, *, accuracy: Any = None) -> Any:
    """The sine of complex numbers: ``sin(a + bi) = sin(a) cosh(b) + i cos(a) sinh(b)``."""
    s, c, b = _circular(p.real(x), p.imag(x), accuracy)
    return p.complex(_by_cosh(s, b), _by_sinh(c, b))


def complex_cos(x: ArrayLike, *, accuracy: Any = None) -> Any:
    """The cosine of complex numbers: ``cos(a + bi) = cos(a) cosh(b) - i sin(a) sinh(b)``."""
    s, c, b = _circular(p.real(x), p.imag(x), accuracy)
    return p.complex(_by_cosh(c, b), p.neg(_by_sinh(s, b)))


def complex_sinh(x: ArrayLike) -> Any:
    """The hyperbolic sine of complex numbers: ``sinh(a + bi) = sinh(a) cos(b) + i cosh(a) sin(b)``."""
    s, c, a = _circular(p.imag(x), p.real(x))
    return p.complex(_by_sinh(c, a), _by_cosh(s, a))


def complex_cosh(x: ArrayLike) -> Any:
    """The hyperbolic cosine of complex numbers: ``cosh(a + bi) = cosh(a) cos(b) + i sinh(a) sin(b)``."""
    s, c, a = _circular(p.imag(x), p.real(x))
    return p.complex(_by_cosh(c, a), _by_sinh(s, a))


def _circular(angle, t, accuracy=None):
    """Sine and cosine of `angle`, and what the products with sinh and cosh of `t` need.

    For an infinite `t` and an angle without a cosine, C and NumPy define the product with the cosine as infinite.
    """
    s, c = p.sin(angle, accuracy=accuracy), p.cos(angle, accuracy=accuracy)
    endless = p.bitwise_and(p.ne(c, c), p.eq(p.abs(t), p.scalar_like(t, np.inf)))
    c = p.select(endless, filling.full_like(c, 1), c)
    # sinh and cosh of t / 2. The bound keeps products with zeros finite, and changes no other product.
    top = math.log(float(dtypes.finfo(t.dtype).max)) * (1 - 1e-4)
    half = p.min(p.mul(p.abs(t), p.scalar_like(t, 0.5)), p.scalar_like(t, top))
    grown = p.expm1(half)
    ratio = p.div(grown, p.add(grown, p.scalar_like(t, 1)))
    sinh = p.mul(p.sign(t), p.mul(p.add(grown, ratio), p.scalar_like(t, 0.5)))
    cosh = p.add(p.mul(p.mul(grown, ratio), p.scalar_like(t, 0.5)), p.scalar_like(t, 1))
    return s, c, (t, sinh, cosh)


def _by_cosh(factor, hyperbolic):
    """``factor * cosh(t) = factor + 2 * factor * sinh(t / 2) ** 2``. It overflows only where the product does."""
    _, sinh, _ = hyperbolic
    product = p.add(factor, p.mul(p.mul(p.add(factor, factor), sinh), sinh))
    return p.select(p.eq(factor, p.scalar_like(factor, 0)), factor, product)


def _by_sinh(factor, hyperbolic):
    """``factor * sinh(t) = 2 * factor * sinh(t / 2) * cosh(t / 2)``. A product with zero is zero, also that of NaN."""
    t, sinh, cosh = hyperbolic
    product = p.mul(p.mul(p.add(factor, factor), sinh), cosh)
    # Half of a small number could be subnormal, which XLA takes for zero.
    small = p.lt(p.abs(t), p.scalar_like(t, float(dtypes.finfo(t.dtype).eps)))
    product = p.select(small, p.mul(factor, t), product)
    zero = p.bitwise_or(p.eq(factor, p.scalar_like(t, 0)), p.eq(t, p.scalar_like(t, 0)))
    return p.select(p.bitwise_and(zero, p.ne(product, product)), filling.full_like(product, 0), product)


# ---- the high half of a product ------------------------------------------------------------------


@decompositions.rule(p.mulhi_p)
def _mulhi(x, y):
    dtype = x.dtype
    bits = dtypes.itemsize_bits(dtype)
    signed = dtypes.is_signed_integer(dtype)
    shift = p.shift_right_arithmetic if signed else p.shift_right_logical
    if bits < 32:
        wide = np.dtype(np.int32 if signed else np.uint32)
        product = p.mul(convert_to(x, wide), convert_to(y, wide))
        return convert_to(shift(product, wide.type(bits)), dtype)
    # Schoolbook multiplication on halves (Knuth, The Art of Computer Programming 2, 4.3.1).
    half = dtype.type(bits // 2)
    low = dtype.type((1 << (bits // 2)) - 1)
    x0, x1 = p.bitwise_and(x, low), shift(x, half)
    y0, y1 = p.bitwise_and(y, low), shift(y, half)
    carry = p.shift_right_logical(p.mul(x0, y0), half)
    middle = p.add(p.mul(x1, y0), carry)
    other = p.add(p.mul(x0, y1), p.bitwise_and(middle, low))
    return p.add(p.mul(x1, y1), p.add(shift(middle, half), shift(other, half)))
