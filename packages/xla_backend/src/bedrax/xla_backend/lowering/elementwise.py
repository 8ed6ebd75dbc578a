"""StableHLO of elementwise primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.decompositions.elementwise import (
    complex_cos,
    complex_cosh,
    complex_exp2,
    complex_sin,
    complex_sinh,
    complex_square,
    power_of_integers,
)
from bedrax.lax.primitives import elementwise as p
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.elementwise import REAL_OF
from bedrax.xla_backend.lowering.build import comparison_kind
from bedrax.xla_backend.tables import lowering_rules, nary, unary

unary(
    p.neg_p,
    "stablehlo.negate",
    p.floor_p,
    "stablehlo.floor",
    p.ceil_p,
    "stablehlo.ceil",
    p.is_finite_p,
    "stablehlo.is_finite",
    p.asin_p,
    "chlo.asin",
    p.acos_p,
    "chlo.acos",
    p.atan_p,
    "chlo.atan",
    p.asinh_p,
    "chlo.asinh",
    p.acosh_p,
    "chlo.acosh",
    p.atanh_p,
    "chlo.atanh",
    p.abs_p,
    "stablehlo.abs",
    p.real_p,
    "stablehlo.real",
    p.imag_p,
    "stablehlo.imag",
    p.not_p,
    "stablehlo.not",
    p.clz_p,
    "stablehlo.count_leading_zeros",
)
nary(
    p.add_p,
    "stablehlo.add",
    p.add_any_p,
    "stablehlo.add",
    p.sub_p,
    "stablehlo.subtract",
    p.div_p,
    "stablehlo.divide",
    p.rem_p,
    "stablehlo.remainder",
    p.nextafter_p,
    "chlo.next_after",
    p.complex_p,
    "stablehlo.complex",
    p.and_p,
    "stablehlo.and",
    p.or_p,
    "stablehlo.or",
    p.xor_p,
    "stablehlo.xor",
    p.shift_left_p,
    "stablehlo.shift_left",
    p.shift_right_logical_p,
    "stablehlo.shift_right_logical",
    p.shift_right_arithmetic_p,
    "stablehlo.shift_right_arithmetic",
)


@lowering_rules.rule(p.population_count_p, kind="stablehlo.popcnt")
def _population_count(ctx, x):
    aval = ctx.avals_in[0]
    width = dtypes.iinfo(aval.dtype).bits
    if width < 8 and dtypes.is_signed_integer(aval.dtype):
        # XLA's CPU backend counts the bits of the byte that holds a signed number, including the sign extension.
        unsigned = aval.update(dtype=dtypes.as_dtype(f"uint{width}"))
        bits = ctx.emit("stablehlo.bitcast_convert", (x,), unsigned)
        return ctx.emit("stablehlo.bitcast_convert", (ctx.emit("stablehlo.popcnt", (bits,), unsigned),))
    return ctx.emit("stablehlo.popcnt", (x,))


lowering_rules.rule(p.copy_p, p.stop_gradient_p)(lambda ctx, x: x)


# ---- functions with an accuracy ------------------------------------------------------------------


def accuracy_attribute(ctx: Any, accuracy: Any) -> Any:
    """The attribute ``result_accuracy`` of an op, or None."""
    if accuracy is None:
        return None
    tolerance = accuracy if isinstance(accuracy, p.Tolerance) else p.Tolerance()
    mode = "TOLERANCE" if isinstance(accuracy, p.Tolerance) else accuracy.name
    return ctx.parse(
        f"#stablehlo.result_accuracy<atol = {tolerance.atol:.16e}, rtol = {tolerance.rtol:.16e}, "
        f"ulps = {tolerance.ulps}, mode = #stablehlo.result_accuracy_mode<{mode}>>"
    )


def _accurate(prim, op):
    def rule(ctx, x, *, accuracy=None):
        if accuracy is None:
            return ctx.emit(op, (x,))
        return ctx.emit(op, (x,), result_accuracy=accuracy_attribute(ctx, accuracy))

    lowering_rules.add(prim, rule, kind=op)


for _prim, _op in {
    p.exp_p: "exponential",
    p.expm1_p: "exponential_minus_one",
    p.log_p: "log",
    p.log1p_p: "log_plus_one",
    p.sqrt_p: "sqrt",
    p.rsqrt_p: "rsqrt",
    p.cbrt_p: "cbrt",
    p.tan_p: "tan",
    p.tanh_p: "tanh",
    p.logistic_p: "logistic",
}.items():
    _accurate(_prim, f"stablehlo.{_op}")


def _by_reals(prim, op, of_complex):
    """A row: the operation for reals, a formula for complex numbers, whose small parts XLA's operation loses."""

    def rule(ctx, x, **params):
        if dtypes.is_complex(ctx.avals_in[0].dtype):
            return ctx.lower_fun(of_complex, x, **params)
        if params.get("accuracy") is None:
            return ctx.emit(op, (x,))
        return ctx.emit(op, (x,), result_accuracy=accuracy_attribute(ctx, params["accuracy"]))

    lowering_rules.add(prim, rule, kind=op)


_by_reals(p.sin_p, "stablehlo.sine", complex_sin)
_by_reals(p.cos_p, "stablehlo.cosine", complex_cos)
_by_reals(p.sinh_p, "chlo.sinh", complex_sinh)
_by_reals(p.cosh_p, "chlo.cosh", complex_cosh)


@lowering_rules.rule(p.exp2_p)
def _exp2(ctx, x, *, accuracy=None):
    aval = ctx.avals_in[0]
    if dtypes.is_complex(aval.dtype):
        return ctx.lower_fun(complex_exp2, x, accuracy=accuracy)
    # A product with log(2) before exp would lose digits that a power keeps.
    return ctx.emit("stablehlo.power", (ctx.full(aval.shape, 2, aval.dtype), x))


# ---- one operand ---------------------------------------------------------------------------------


@lowering_rules.rule(p.sign_p)
def _sign(ctx, x):
    aval = ctx.avals_in[0]
    if dtypes.is_unsigned_integer(aval.dtype):
        zero = ctx.full(aval.shape, 0, aval.dtype)
        return ctx.convert(ctx.compare(x, zero, "NE"), aval.dtype)
    return ctx.emit("stablehlo.sign", (x,))


@lowering_rules.rule(p.round_p)
def _round(ctx, x, *, rounding_method):
    even = rounding_method == p.RoundingMethod.TO_NEAREST_EVEN
    return ctx.emit("stablehlo.round_nearest_even" if even else "stablehlo.round_nearest_afz", (x,))


@lowering_rules.rule(p.square_p)
def _square(ctx, x):
    if dtypes.is_complex(ctx.avals_in[0].dtype):
        return ctx.lower_fun(complex_square, x)
    return ctx.emit("stablehlo.multiply", (x, x))


@lowering_rules.rule(p.conj_p)
def _conj(ctx, x, *, input_dtype):
    aval = ctx.avals_in[0]
    if not dtypes.is_complex(aval.dtype):
        return ctx.emit("stablehlo.complex", (x, ctx.full(aval.shape, 0, aval.dtype)))
    part = ctx.tensor_type(aval.shape, REAL_OF[aval.dtype])
    real = ctx.emit("stablehlo.real", (x,), part)
    imag = ctx.emit("stablehlo.imag", (x,), part)
    return ctx.emit("stablehlo.complex", (real, ctx.unary("stablehlo.negate", imag)))


# ---- two operands --------------------------------------------------------------------------------


@lowering_rules.rule(p.mul_p)
def _mul(ctx, x, y, *, out_dtype=None):
    if out_dtype is not None:
        operands = ctx.convert(x, out_dtype), ctx.convert(y, out_dtype)
        return ctx.emit("stablehlo.multiply", ctx.broadcast_operands(operands))
    return ctx.emit("stablehlo.multiply", ctx.spread_operands((x, y)))


@lowering_rules.rule(p.atan2_p)
def _atan2(ctx, x, y):
    if not dtypes.is_complex(ctx.avals_in[0].dtype):
        return ctx.emit("stablehlo.atan2", ctx.spread_operands((x, y)))

    def formula(x, y):
        i = p.scalar_like(x, 1j)
        root = p.sqrt(p.add(p.square(x), p.square(y)))
        return p.mul(p.neg(i), p.log(p.div(p.add(y, p.mul(i, x)), root)))

    return ctx.lower_fun(formula, x, y)


def _compared(prim, direction, total_order=False):
    def rule(ctx, x, y):
        x, y = ctx.spread_operands((x, y))
        dtype = ctx.avals_in[0].dtype
        kind = "TOTALORDER" if total_order and dtypes.is_floating(dtype) else comparison_kind(dtype)
        return ctx.compare(x, y, direction, kind, ctx.own_result())

    lowering_rules.add(prim, rule, kind="stablehlo.compare")


for _prim in (p.eq_p, p.ne_p, p.ge_p, p.gt_p, p.le_p, p.lt_p):
    _compared(_prim, _prim.name.upper())
_compared(p.eq_to_p, "EQ", True)
_compared(p.le_to_p, "LE", True)
_compared(p.lt_to_p, "LT", True)


def _ordered_complex(prim):
    """Rule for the extremum of two complex numbers in lexicographic order. If one is NaN, the result is NaN."""
    prefers = p.gt if prim is p.max_p else p.lt

    def choose(x, y):
        xr, yr = p.real(x), p.real(y)
        first = p.bitwise_or(prefers(xr, yr), p.bitwise_and(p.eq(xr, yr), prefers(p.imag(x), p.imag(y))))
        shape = first.shape
        x, y = (v if v.shape == shape else shaping.broadcast_in_dim(v, shape, ()) for v in (x, y))
        chosen = p.select(first, x, y)
        chosen = p.select(p.ne(y, y), y, chosen)
        return p.select(p.ne(x, x), x, chosen)

    return choose


def _extremum(prim, op):
    def rule(ctx, x, y):
        if dtypes.is_complex(ctx.avals_in[0].dtype):
            return ctx.lower_fun(_ordered_complex(prim), x, y)
        return ctx.emit(op, ctx.spread_operands((x, y)))

    lowering_rules.add(prim, rule, kind=op)


_extremum(p.max_p, "stablehlo.maximum")
_extremum(p.min_p, "stablehlo.minimum")


@lowering_rules.rule(p.clamp_p)
def _clamp(ctx, low, x, high):
    if dtypes.is_complex(ctx.avals_in[0].dtype):
        return ctx.lower_fun(lambda low, x, high: p.min(p.max(low, x), high), low, x, high)
    return ctx.emit("stablehlo.clamp", (low, x, high))


@lowering_rules.rule(p.pow_p)
def _pow(ctx, x, y):
    base, exponent = ctx.avals_in
    if base.dtype == exponent.dtype:
        x, y = ctx.spread_operands((x, y))
        power = ctx.emit("stablehlo.power", (x, y))
        if not dtypes.is_complex(base.dtype):
            return power
        # XLA uses the logarithm, which makes powers of 0 NaN. 0 ** y is 0 if y has a positive real part.
        shape, part = ctx.shape(x), REAL_OF[base.dtype]
        zero = ctx.full(shape, 0, base.dtype)
        grows = ctx.compare(
            ctx.emit("stablehlo.real", (y,), ctx.tensor_type(shape, part)), ctx.full(shape, 0, part), "GT"
        )
        vanishes = ctx.binary("stablehlo.and", ctx.compare(x, zero, "EQ"), grows)
        return ctx.select(vanishes, zero, power)
    return ctx.lower_fun(power_of_integers, x, y)


# ---- choice --------------------------------------------------------------------------------------


@lowering_rules.rule(p.select_n_p)
def _select_n(ctx, which, *cases):
    if len(cases) == 1:
        return cases[0]
    aval = ctx.avals_in[0]
    if aval.dtype == np.bool_:
        return ctx.emit("stablehlo.select", (which, cases[1], cases[0]))
    out = cases[0]
    for i, case in enumerate(cases[1:], 1):
        past = ctx.compare(which, ctx.full(aval.shape, i, aval.dtype), "GE")
        out = ctx.emit("stablehlo.select", (past, case, out))
    return out
