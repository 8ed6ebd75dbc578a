"""Derivatives and transposes of elementwise primitives.

A formula multiplies the tangent by a factor or divides it by one, never the reverse, so that the
result is linear in the tangent. If operands of rank 0 are combined with others, the factor has the
result's shape, and transposes sum the cotangent back down.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from bedrax.autodiff.tables import (
    UndefinedPrimal,
    Zero,
    bilinear,
    instantiate,
    is_undefined,
    jvp,
    jvp_rules,
    linear,
    transpose_rules,
    unbroadcast,
    zero,
)
from bedrax.core.avals import aval_of
from bedrax.core.dtypes import is_complex, is_inexact, is_integer
from bedrax.lax import filling
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives import elementwise as p
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.conversions import convert_to
from bedrax.lax.primitives.elementwise import neg, scalar_like

# Operands of rules have the shape of the result or rank 0: no operand needs a broadcast.
add: Final = p.add_p.bind
sub: Final = p.sub_p.bind
mul: Final = p.mul_p.bind
div: Final = p.div_p.bind


def _one(x):
    return scalar_like(x, 1)


def _spread(t, ans):
    """A tangent of rank 0 with the shape of the result."""
    shape = aval_of(ans).shape
    return t if aval_of(t).shape == shape else shaping.broadcast_in_dim(t, shape, ())


# ---- one operand ---------------------------------------------------------------------------------

linear(p.neg_p, lambda ct, x: [neg(ct)])
linear(p.copy_p, lambda ct, x: [ct])
zero(p.floor_p, p.ceil_p, p.round_p, p.is_finite_p, p.not_p, p.population_count_p, p.clz_p)
zero(p.stop_gradient_p)

jvp(p.exp_p, lambda t, ans, x, **_: mul(t, ans))
jvp(p.exp2_p, lambda t, ans, x, **_: mul(t, mul(ans, scalar_like(x, math.log(2)))))
jvp(p.expm1_p, lambda t, ans, x, **_: mul(t, add(ans, _one(ans))))
jvp(p.log_p, lambda t, ans, x, **_: div(t, x))
jvp(p.log2_p, lambda t, ans, x, **_: div(t, mul(x, scalar_like(x, math.log(2)))))
jvp(p.log1p_p, lambda t, ans, x, **_: div(t, add(x, _one(x))))
jvp(p.sqrt_p, lambda t, ans, x, **_: mul(t, div(scalar_like(x, 0.5), ans)))
jvp(p.rsqrt_p, lambda t, ans, x, **_: mul(t, mul(scalar_like(x, -0.5), div(ans, x))))
jvp(p.cbrt_p, lambda t, ans, x, **_: div(t, mul(scalar_like(x, 3), p.square(ans))))
jvp(p.one_minus_square_p, lambda t, ans, x: mul(t, mul(scalar_like(x, -2), x)))
jvp(p.square_p, lambda t, ans, x: mul(t, mul(scalar_like(x, 2), x)))
jvp(p.sin_p, lambda t, ans, x, **_: mul(t, p.cos(x)))
jvp(p.cos_p, lambda t, ans, x, **_: neg(mul(t, p.sin(x))))
jvp(p.tan_p, lambda t, ans, x, **_: mul(t, add(_one(x), p.square(ans))))
jvp(p.tanh_p, lambda t, ans, x, **_: mul(t, mul(add(_one(x), ans), sub(_one(x), ans))))
jvp(p.sinh_p, lambda t, ans, x: mul(t, p.cosh(x)))
jvp(p.cosh_p, lambda t, ans, x: mul(t, p.sinh(x)))
# (1 - x)(1 + x) keeps the digits of 1 - x near the ends of the interval.
jvp(p.asin_p, lambda t, ans, x: mul(t, p.rsqrt(mul(sub(_one(x), x), add(_one(x), x)))))
jvp(p.acos_p, lambda t, ans, x: mul(t, neg(p.rsqrt(mul(sub(_one(x), x), add(_one(x), x))))))
jvp(p.atan_p, lambda t, ans, x: div(t, add(_one(x), p.square(x))))
jvp(p.asinh_p, lambda t, ans, x: mul(t, p.rsqrt(add(p.square(x), _one(x)))))
# Two roots: the root of the product has another branch for complex x.
jvp(p.acosh_p, lambda t, ans, x: mul(t, mul(p.rsqrt(sub(x, _one(x))), p.rsqrt(add(x, _one(x))))))
jvp(p.atanh_p, lambda t, ans, x: div(t, mul(sub(_one(x), x), add(_one(x), x))))
jvp(p.logistic_p, lambda t, ans, x, **_: mul(t, mul(ans, sub(_one(ans), ans))))


def _abs(t, ans, x):
    if is_complex(aval_of(x).dtype):
        return p.real(mul(t, p.conj(p.sign(x))))
    return p.select_n(p.ge(x, scalar_like(x, 0)), neg(t), t)


def _integer_pow(t, ans, x, *, y):
    if y == 0:
        return Zero.of(ans)
    if y == 1:
        return mul(t, _one(x))
    return mul(t, mul(scalar_like(x, y), x if y == 2 else p.integer_pow(x, y - 1)))


def _sign(t, ans, x):
    if not is_complex(aval_of(x).dtype):
        return Zero.of(ans)
    # x/|x| turns with the part of t across x: (t - s Re(conj(s) t)) / |x|.
    along = p.real(mul(t, p.conj(ans)))
    across = sub(t, mul(_real_to_complex(along), ans))
    size = p.abs(x)
    size = p.select_n(p.eq(size, scalar_like(size, 0)), size, filling.full_like(size, math.inf))
    return div(across, _real_to_complex(size))


jvp(p.abs_p, _abs)


jvp(p.sign_p, _sign)
jvp(p.integer_pow_p, _integer_pow)


# Cotangents pair with tangents by Re(ct * t), so transposes do not conjugate.


def _real_to_complex(x):
    return p.complex(x, zeros_of(aval_of(x)))


linear(p.real_p, lambda ct, x: [_real_to_complex(ct)])
linear(p.imag_p, lambda ct, x: [p.complex(zeros_of(aval_of(ct)), neg(ct))])


@transpose_rules.rule(p.conj_p, kind="linear")
def _conj_transpose(ct, x, *, input_dtype):
    back = p.conj(ct)
    return [back if is_complex(input_dtype) else p.real(back)]


linear(p.conj_p)


@transpose_rules.rule(p.complex_p, kind="linear")
def _complex_transpose(ct, x, y):
    return [
        unbroadcast(x.aval, p.real(ct)) if is_undefined(x) else None,
        unbroadcast(y.aval, neg(p.imag(ct))) if is_undefined(y) else None,
    ]


linear(p.complex_p)


# ---- sums and products ---------------------------------------------------------------------------


def _sum_jvp(prim, negate_second):
    def rule(primals, tangents):
        x, y = primals
        tx, ty = tangents
        ans = prim.bind(x, y)
        if type(ty) is Zero:
            return ans, Zero.of(ans) if type(tx) is Zero else _spread(tx, ans)
        if type(tx) is Zero:
            return ans, _spread(neg(ty) if negate_second else ty, ans)
        return ans, prim.bind(tx, ty)

    jvp_rules.add(prim, rule, "linear")

    def transpose(ct, x, y):
        return [
            unbroadcast(x.aval, ct) if is_undefined(x) else None,
            unbroadcast(y.aval, neg(ct) if negate_second else ct) if is_undefined(y) else None,
        ]

    transpose_rules.add(prim, transpose, "linear")


_sum_jvp(p.add_p, False)
_sum_jvp(p.sub_p, True)
linear(p.add_any_p, lambda ct, x, y: [ct if is_undefined(x) else None, ct if is_undefined(y) else None])


def _factor_transpose(ct, undefined: UndefinedPrimal, other, out_dtype):
    aval = undefined.aval
    if out_dtype is None:
        return unbroadcast(aval, mul(ct, other))
    product = mul(ct, convert_to(other, np.dtype(out_dtype)))
    return convert_to(unbroadcast(aval.update(dtype=out_dtype), product), aval.dtype, aval.weak_type)


bilinear(
    p.mul_p,
    lambda ct, x, y, *, out_dtype=None: _factor_transpose(ct, x, y, out_dtype),
    lambda ct, x, y, *, out_dtype=None: _factor_transpose(ct, y, x, out_dtype),
)


def _div_transpose(ct, x, y):
    if not is_undefined(x) or is_undefined(y):
        raise ValueError("'div' is linear in its dividend only")
    return [unbroadcast(x.aval, div(ct, y)), None]


jvp(p.div_p, lambda t, ans, x, y: div(t, y), lambda t, ans, x, y: mul(neg(t), div(ans, y)), transpose=_div_transpose)


# ---- other functions of two operands -------------------------------------------------------------

# x - rem(x, y) is y times a whole number.
jvp(p.rem_p, lambda t, ans, x, y: _spread(t, ans), lambda t, ans, x, y: mul(t, neg(p.round(div(sub(x, ans), y)))))
jvp(
    p.atan2_p,
    lambda t, ans, x, y: mul(t, div(y, add(p.square(x), p.square(y)))),
    lambda t, ans, x, y: mul(t, div(neg(x), add(p.square(x), p.square(y)))),
)


def _extremum_share(ans, x, y):
    """1 where `x` is the extremum, 1/2 where both are, else 0."""
    dtype = aval_of(ans).dtype
    mine, other = convert_to(p.eq(x, ans), dtype), convert_to(p.eq(y, ans), dtype)
    return div(mine, add(other, scalar_like(other, 1)))


for _prim in (p.max_p, p.min_p):
    jvp(
        _prim,
        lambda t, ans, x, y: mul(t, _extremum_share(ans, x, y)),
        lambda t, ans, x, y: mul(t, _extremum_share(ans, y, x)),
    )


def _pow_base(t, ans, x, y):
    # Where both are 0, the exponent y - 1 must not be -1: 0 * x**-1 is nan there. Elsewhere the derivative of this
    # formula by y is that of x**y by both.
    y = _spread(y, ans)
    hole = p.and_p.bind(p.eq(y, scalar_like(y, 0)), p.eq(_spread(x, ans), scalar_like(x, 0)))
    exponent = sub(p.select_n(hole, y, filling.full_like(y, 1)), _one(y))
    factor = y
    if is_integer(aval_of(y).dtype):
        aval = aval_of(x)
        factor = convert_to(y, aval.dtype, aval.weak_type)
    return mul(t, mul(factor, p.pow(x, exponent)))


def _pow_exponent(t, ans, x, y):
    # The limit of log(x) * x**y at x = 0 is 0 for positive y.
    safe = p.select_n(p.eq(x, scalar_like(x, 0)), x, filling.full_like(x, 1))
    return mul(t, mul(p.log(safe), ans))


jvp(p.pow_p, _pow_base, _pow_exponent)

# The step to the next number is a rounding: the derivative is that of `x`.
jvp(p.nextafter_p, lambda t, ans, x, y: _spread(t, ans), None)
zero(p.and_p, p.or_p, p.xor_p, p.shift_left_p, p.shift_right_logical_p, p.shift_right_arithmetic_p, p.mulhi_p)
zero(p.eq_p, p.ne_p, p.ge_p, p.gt_p, p.le_p, p.lt_p, p.eq_to_p, p.le_to_p, p.lt_to_p)


# ---- choice --------------------------------------------------------------------------------------


def _only_where(mask, t, ans):
    """The tangent where `mask` holds, else 0."""
    shape = aval_of(ans).shape
    if aval_of(mask).shape != shape:
        mask = shaping.broadcast_in_dim(mask, shape, ())
    t = _spread(t, ans)
    return p.select_n(mask, zeros_of(aval_of(t)), t)


jvp(
    p.clamp_p,
    lambda t, ans, low, x, high: _only_where(p.gt(low, x), t, ans),
    lambda t, ans, low, x, high: _only_where(p.bitwise_and(p.gt(x, low), p.lt(x, high)), t, ans),
    lambda t, ans, low, x, high: _only_where(p.lt(high, x), t, ans),
)


@jvp_rules.rule(p.select_n_p, kind="linear")
def _select_jvp(primals, tangents):
    which, *cases = primals
    ans = p.select_n_p.bind(which, *cases)
    if all(type(t) is Zero for t in tangents[1:]) or not is_inexact(aval_of(ans).dtype):
        return ans, Zero.of(ans)
    return ans, p.select_n_p.bind(which, *map(instantiate, tangents[1:]))


@transpose_rules.rule(p.select_n_p, kind="linear")
def _select_transpose(ct, which, *cases):
    nothing = zeros_of(aval_of(ct))
    out = [None]
    for i, case in enumerate(cases):
        if is_undefined(case):
            out.append(p.select_n_p.bind(which, *[ct if i == j else nothing for j in range(len(cases))]))
        else:
            out.append(None)
    return out


# ---- polynomials ---------------------------------------------------------------------------------


@jvp_rules.rule(p.polynomial_p)
def _polynomial_jvp(primals, tangents, **params):
    """By `x`: the polynomial of the coefficients ``k a_k``. By the coefficients, in which it is linear: itself."""
    x, *coefficients = primals
    of_x, *of_coefficients = tangents
    bind = p.polynomial_p.bind
    ans = bind(*primals, **params)
    if not is_inexact(aval_of(ans).dtype):
        return ans, Zero.of(ans)
    terms = []
    if type(of_x) is not Zero and len(coefficients) > 1:
        slope = [mul(c, scalar_like(c, k)) if k > 1 else c for k, c in enumerate(coefficients) if k]
        terms.append(mul(_spread(of_x, ans), bind(x, *slope, **params)))
    while of_coefficients and type(of_coefficients[-1]) is Zero:
        of_coefficients.pop()
    if of_coefficients:
        # A tangent that is known to vanish is the constant 0.
        ts = [scalar_like(c, 0) if type(t) is Zero else t for t, c in zip(of_coefficients, coefficients, strict=False)]
        terms.append(_spread(bind(x, *ts, **params), ans))
    if not terms:
        return ans, Zero.of(ans)
    return ans, terms[0] if len(terms) == 1 else add(*terms)


@transpose_rules.rule(p.polynomial_p)
def _polynomial_transpose(ct, x, *coefficients, **params):
    out = [None]
    for k, c in enumerate(coefficients):
        if k:
            ct = mul(ct, x)
        out.append(unbroadcast(c.aval, ct) if is_undefined(c) else None)
    return out
