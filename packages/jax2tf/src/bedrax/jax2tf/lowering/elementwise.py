"""TensorFlow for elementwise primitives: one operation if its results agree, else a formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.jax2tf.carriers import accumulator, carrier, cast, in_carrier, is_narrow_int, moved
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import np_dtype, scalar, static
from bedrax.lax.decompositions.elementwise import power_of_integers
from bedrax.lax.primitives import elementwise as p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


def _row(prim, compute, target=None, kind: str = "formula") -> None:
    """A row whose `compute(*tensors)` needs no context; `target`: the dtype to compute in."""
    tf_rules.add(prim, in_carrier(lambda ctx, *xs, **_: compute(*xs), target), kind)


def _named(path: str):
    def compute(*xs):
        function = tf
        for name in path.split("."):
            function = getattr(function, name)
        return function(*xs)

    return compute


for _prim, _path in (
    (p.floor_p, "floor"),
    (p.ceil_p, "math.ceil"),
    (p.is_finite_p, "math.is_finite"),
    (p.exp_p, "exp"),
    (p.sqrt_p, "sqrt"),
    (p.rsqrt_p, "math.rsqrt"),
    (p.square_p, "square"),
    (p.sin_p, "sin"),
    (p.cos_p, "cos"),
    (p.tan_p, "tan"),
    (p.tanh_p, "tanh"),
    (p.sinh_p, "sinh"),
    (p.cosh_p, "cosh"),
    (p.asin_p, "asin"),
    (p.acos_p, "acos"),
    (p.atan_p, "atan"),
    (p.asinh_p, "asinh"),
    (p.acosh_p, "acosh"),
    (p.atanh_p, "atanh"),
    (p.logistic_p, "sigmoid"),
    (p.real_p, "math.real"),
    (p.imag_p, "math.imag"),
    (p.complex_p, "complex"),
    (p.add_p, "add"),
    (p.add_any_p, "add"),
    (p.sub_p, "subtract"),
):
    _row(_prim, _named(_path), kind=f"tf.{_path}")


def _neg(x):
    if x.dtype.is_unsigned:  # not 0 - x: a graph optimization turns it into a negation, which has no kernel
        return tf.bitwise.invert(x) + scalar(1, x)
    return tf.negative(x)


def _sign(x):
    return tf.cast(tf.not_equal(x, 0), x.dtype) if x.dtype.is_unsigned else tf.sign(x)


# ---- complex numbers by their parts: TensorFlow's kernels lose small, large and infinite ones ------


def _parts(x):
    return tf.math.real(x), tf.math.imag(x)


def _on_parts(of_real, of_parts):
    """A function of real numbers, and the parts of the result for complex ones."""
    return lambda x: tf.complex(*of_parts(*_parts(x))) if x.dtype.is_complex else of_real(x)


def _log_parts(a, b):
    large, small = tf.maximum(tf.abs(a), tf.abs(b)), tf.minimum(tf.abs(a), tf.abs(b))
    near = tf.logical_and(large > 0.5, large < 2)  # there the logarithm is near 0, and that of 1 + x keeps digits
    real = tf.math.log1p((large - 1) * (large + 1) + small * small) / 2
    return tf.where(near, real, tf.math.log(tf.abs(tf.complex(a, b)))), tf.atan2(b, a)


def _log1p_parts(a, b):
    real, angle = _log_parts(a + 1, b)
    near = tf.logical_and(tf.abs(a) < 0.5, tf.abs(b) < 0.5)
    return tf.where(near, tf.math.log1p(a * (a + 2) + b * b) / 2, real), angle  # |1 + z|^2 is 1 + a (a + 2) + b^2


def _expm1_parts(a, b):
    sine = tf.where(tf.equal(b, 0), b, tf.exp(a) * tf.sin(b))  # the factor may be infinite
    return tf.math.expm1(a) * tf.cos(b) - 2 * tf.square(tf.sin(b / 2)), sine


def _sign_parts(a, b):
    size = tf.abs(tf.complex(a, b))
    size = tf.where(tf.equal(size, 0), tf.ones_like(size), size)
    return a / size, b / size


_row(p.log_p, _on_parts(_named("math.log"), _log_parts), kind="tf.math.log")
_row(p.log1p_p, _on_parts(_named("math.log1p"), _log1p_parts), kind="tf.math.log1p")
_row(p.expm1_p, _on_parts(_named("math.expm1"), _expm1_parts), kind="tf.math.expm1")


def _complex_quotient(ctx, x, y):
    """TensorFlow's quotient; for zeros and infinities, that of the C standard (annex G), which XLA has."""
    known = static(y)
    out = tf.math.divide(x, y)
    if ctx.for_xla or (known is not None and np.all(np.isfinite(known) & (known != 0))):
        return out
    (a, b), (c, d) = _parts(x), _parts(y)
    finite = lambda *parts: tf.logical_and(*map(tf.math.is_finite, parts))
    infinite = lambda *parts: tf.logical_or(*map(tf.math.is_inf, parts))
    sign = lambda part: tf.where(tf.math.is_inf(part), tf.sign(part), tf.zeros_like(part))
    large, small = infinite(a, b), infinite(c, d)
    special = tf.logical_or(tf.logical_and(large, finite(c, d)), tf.logical_and(small, finite(a, b)))
    u, v = (tf.where(large, sign(part), part) for part in (a, b))
    s, t = (tf.where(small, sign(part), part) for part in (c, d))
    factor = tf.where(large, scalar(np.inf, a), scalar(0, a))
    out = tf.where(special, tf.complex(factor * (u * s + v * t), factor * (v * s - u * t)), out)
    return tf.where(tf.equal(y, 0), tf.complex(a / c, b / c), out)


def _abs(x):
    return x if x.dtype.is_unsigned else tf.abs(x)


def _exp2(x):
    if not x.dtype.is_complex:
        return tf.pow(scalar(2, x), x)
    # A complex factor would turn an infinite part into NaN.
    return tf.exp(tf.complex(*(part * scalar(np.log(2), part) for part in (tf.math.real(x), tf.math.imag(x)))))


def _cbrt(x):
    """The power 1/3, and one step of Newton's method, which corrects the rounding error."""
    y = tf.sign(x) * tf.pow(tf.abs(x), scalar(1 / 3, x))
    finite = tf.logical_and(
        tf.math.is_finite(x), tf.not_equal(y, 0)
    )  # the root of a subnormal number may be flushed to 0
    safe = tf.where(finite, y, scalar(1, x))
    return tf.where(finite, y - (y - x / (safe * safe)) * scalar(1 / 3, x), y)


_row(p.neg_p, _neg)
_row(p.sign_p, _on_parts(_sign, _sign_parts))
_row(p.abs_p, _abs)
_row(p.exp2_p, _exp2, accumulator)
_row(p.cbrt_p, _cbrt, accumulator)


@tf_rules.rule(p.conj_p)
def _conj(ctx, x, *, input_dtype=None):
    return tf.math.conj(x) if x.dtype.is_complex else tf.complex(x, tf.zeros_like(x))


tf_rules.rule(p.copy_p, p.stop_gradient_p)(lambda ctx, x: x)


@tf_rules.rule(p.round_p)
@in_carrier
def _round(ctx, x, *, rounding_method):
    if rounding_method == p.RoundingMethod.TO_NEAREST_EVEN:
        return tf.round(x)
    size = tf.abs(x)
    whole = tf.floor(size)
    # x - floor(x) is exact, x + 1/2 is not.
    whole = tf.where(size - whole >= scalar(0.5, x), whole + scalar(1, x), whole)
    return tf.where(x < scalar(0, x), -whole, tf.where(tf.equal(x, 0), x, whole))


@tf_rules.rule(p.mul_p)
def _mul(ctx, x, y, *, out_dtype=None):
    if out_dtype is not None and types.tf_dtype(out_dtype) != x.dtype:
        out = types.tf_dtype(out_dtype)
        x, y = cast(x, out), cast(y, out)
    return _multiply(ctx, x, y)


@in_carrier
def _multiply(ctx, x, y):
    return tf.multiply(x, y)


# ---- division ------------------------------------------------------------------------------------


def _safe_divisor(y):
    """`y` with 1 for the values that trap, and masks where it was 0 or -1 (None: nowhere)."""
    known = static(y)
    signed = not y.dtype.is_unsigned
    if known is not None and np.all(known != 0) and not (signed and np.any(known == -1)):
        return y, None, None
    zero = tf.equal(y, scalar(0, y))
    minus = tf.equal(y, scalar(-1, y)) if signed else None
    bad = zero if minus is None else tf.logical_or(zero, minus)
    return tf.where(bad, scalar(1, y), y), zero, minus


@tf_rules.rule(p.div_p)
@in_carrier
def _div(ctx, x, y):
    """Integers: towards zero; x / 0 has all bits set, and min / -1 wraps to min, as in XLA."""
    if x.dtype.is_complex:
        return _complex_quotient(ctx, x, y)
    if not x.dtype.is_integer:
        return tf.math.divide(x, y)
    safe, zero, minus = _safe_divisor(y)
    quotient = tf.truncatediv(x, safe)
    if minus is not None:
        quotient = tf.where(minus, _neg(x), quotient)
    if zero is not None:
        ones = np.asarray(-1).astype(np_dtype(x)) if not x.dtype.is_unsigned else np.iinfo(np_dtype(x)).max
        quotient = tf.where(zero, scalar(ones, x), quotient)
    return quotient


@tf_rules.rule(p.rem_p)
def _rem(ctx, x, y):
    """The sign is that of the dividend; the remainder of an integer by 0 is the dividend."""
    return (_integer_rem if x.dtype.is_integer else _float_rem)(ctx, x, y)


@in_carrier
def _integer_rem(ctx, x, y):
    safe, zero, _ = _safe_divisor(y)
    rem = x - tf.truncatediv(x, safe) * safe  # with 1 in place of -1 this is 0, too
    return rem if zero is None else tf.where(zero, x, rem)


def _float_rem_rule(ctx, x, y):
    if ctx.enable_xla:
        return tf.truncatemod(x, y)
    size = tf.math.floormod(tf.abs(x), tf.abs(y))  # TFLite has only this operation; for positive numbers they are equal
    return tf.where(x < 0, -size, size)


_float_rem = in_carrier(_float_rem_rule, accumulator)


# ---- powers --------------------------------------------------------------------------------------


@tf_rules.rule(p.pow_p)
def _pow(ctx, x, y):
    if x.dtype == y.dtype:
        return _pow_same(ctx, x, y)
    return ctx.composed(power_of_integers, [x, y], {})


def _pow_rule(ctx, x, y):
    if not x.dtype.is_complex:
        return tf.pow(x, y)
    zero, zero_power = tf.equal(x, 0), tf.equal(y, 0)
    positive = tf.math.real(y) > 0
    out = tf.pow(tf.where(zero, scalar(1, x), x), y)
    at_zero = tf.where(zero_power, scalar(1, x), tf.where(positive, scalar(0, x), scalar(complex(np.nan, np.nan), x)))
    return tf.where(zero, at_zero, out)


_pow_same = in_carrier(_pow_rule, accumulator)


# ---- order ---------------------------------------------------------------------------------------


def _ordered(dtype):
    return tf.int32 if dtype == tf.bool else carrier(dtype)


def _is_nan(x):
    return tf.not_equal(x, x)


def extreme(x: ArrayLike, y: ArrayLike, largest: bool) -> Any:
    """The larger (smaller) of two tensors; complex numbers in lexicographic order.

    nan where either is nan, as far as TensorFlow's operation supports it: its XLA ignores nan in the second operand, so
    a constant is the second operand. Of zeros, the sign is that of either.
    """
    if x.dtype == tf.bool:
        return tf.logical_or(x, y) if largest else tf.logical_and(x, y)
    if not x.dtype.is_complex:
        x, y = (y, x) if static(x) is not None else (x, y)
        return tf.maximum(x, y) if largest else tf.minimum(x, y)
    (a, b), (c, d) = ((tf.math.real(v), tf.math.imag(v)) for v in (x, y))
    before = tf.logical_or(a < c, tf.logical_and(tf.equal(a, c), b < d))
    after = tf.logical_or(a > c, tf.logical_and(tf.equal(a, c), b > d))
    out = tf.where(before if largest else after, y, x)
    return tf.where(_is_nan(x), x + tf.zeros_like(y), tf.where(_is_nan(y), y + tf.zeros_like(x), out))


_row(p.max_p, lambda x, y: extreme(x, y, True))
_row(p.min_p, lambda x, y: extreme(x, y, False))


def _compare(prim, name, key=lambda x: x):
    def compute(x, y):
        return getattr(tf, name)(key(x), key(y))

    _row(prim, compute, _ordered, f"tf.{name}")


def total_order_key(x: ArrayLike) -> Any:
    """Integers in the order of the floats in the total order of IEEE 754. For integers, the integers themselves."""
    if not x.dtype.is_floating:
        return cast(x, _ordered(x.dtype))
    signed = {2: tf.int16, 4: tf.int32, 8: tf.int64}[x.dtype.size]
    bits = tf.bitcast(x, signed)
    # Negative floats have their sign bit set and grow downwards: flip the other bits.
    return tf.where(bits < 0, tf.bitwise.bitwise_xor(bits, tf.constant(signed.max, signed)), bits)


_compare(p.eq_p, "equal")
_compare(p.ne_p, "not_equal")
_compare(p.ge_p, "greater_equal")
_compare(p.gt_p, "greater")
_compare(p.le_p, "less_equal")
_compare(p.lt_p, "less")
_compare(p.eq_to_p, "equal", total_order_key)
_compare(p.le_to_p, "less_equal", total_order_key)
_compare(p.lt_to_p, "less", total_order_key)


@tf_rules.rule(p.clamp_p)
@in_carrier
def _clamp(ctx, low, x, high):
    return extreme(extreme(x, low, True), high, False)


tf_rules.add(p.select_n_p, lambda ctx, which, *cases: moved(_choose)(ctx, *cases, which=which))


def _choose(ctx, *cases, which):
    if len(cases) == 1:
        return cases[0]
    if which.dtype == tf.bool:
        return tf.where(which, cases[1], cases[0])
    which = cast(which, carrier(which.dtype))
    out = cases[0]
    for i, case in enumerate(cases[1:], 1):
        out = tf.where(which >= scalar(i, which), case, out)  # an index out of range selects the nearest case
    return out


# ---- angles and neighbours -----------------------------------------------------------------------


def _atan2(x, y):
    if not x.dtype.is_complex:
        return tf.atan2(x, y)
    i = scalar(1j, x)
    return -i * tf.math.log((y + i * x) / tf.sqrt(x * x + y * y))


_row(p.atan2_p, _atan2, accumulator)


@tf_rules.rule(p.nextafter_p)
def _nextafter(ctx, x, y):
    """One step in the integers of the bits, away from zero or towards it."""
    if x.dtype in (tf.float32, tf.float64):
        return tf.math.nextafter(*_broadcast(x, y))
    if x.dtype.size != 2:
        raise NotImplementedError(
            f"nextafter of {x.dtype.name}: TensorFlow cannot read the bits of such floats; convert to float16 first"
        )
    x, y = _broadcast(x, y)
    bits = tf.cast(tf.bitcast(x, tf.uint16), tf.int32)
    sign = tf.bitwise.bitwise_and(bits, 0x8000)
    size = tf.bitwise.bitwise_and(bits, 0x7FFF)
    up = y > x
    step = tf.where(tf.equal(up, tf.equal(sign, 0)), size + 1, size - 1)
    y_sign = tf.bitwise.bitwise_and(tf.cast(tf.bitcast(y, tf.uint16), tf.int32), 0x8000)
    moved_bits = tf.where(tf.equal(size, 0), tf.bitwise.bitwise_or(y_sign, 1), tf.bitwise.bitwise_or(sign, step))
    out = tf.bitcast(tf.cast(moved_bits, tf.uint16), x.dtype)
    out = tf.where(tf.equal(x, y), y, out)
    return tf.where(tf.logical_or(_is_nan(x), _is_nan(y)), x + y, out)


def _broadcast(x, y):
    if x.shape.rank == y.shape.rank:
        return x, y
    return (x, tf.broadcast_to(y, tf.shape(x))) if x.shape.rank else (tf.broadcast_to(x, tf.shape(y)), y)


# ---- bits ----------------------------------------------------------------------------------------


def _bitwise(prim, on_bools: str, on_ints: str):
    def compute(*xs):
        return getattr(tf, on_bools)(*xs) if xs[0].dtype == tf.bool else getattr(tf.bitwise, on_ints)(*xs)

    _row(prim, compute, kind=f"tf.bitwise.{on_ints}")


_bitwise(p.and_p, "logical_and", "bitwise_and")
_bitwise(p.or_p, "logical_or", "bitwise_or")
_bitwise(p.xor_p, "not_equal", "bitwise_xor")


@tf_rules.rule(p.not_p)
@in_carrier
def _not(ctx, x):
    return tf.logical_not(x) if x.dtype == tf.bool else tf.bitwise.invert(x)


def bit_width(dtype: DTypeLike) -> int:
    """The number of bits of the elements of a dtype."""
    return dtypes.itemsize_bits(dtype)


def unsigned_view(x: ArrayLike) -> Any:
    """The bits of an integer tensor as an unsigned tensor of the same width."""
    return x if x.dtype.is_unsigned else tf.bitcast(x, tf.as_dtype(f"uint{8 * x.dtype.size}"))


def _unsigned_bits(ctx, x):
    """The bits of an integer tensor as an unsigned tensor, and their number."""
    bits = bit_width(ctx.avals_in[0].dtype)
    if is_narrow_int(x.dtype):
        return tf.bitwise.bitwise_and(
            tf.bitcast(tf.cast(x, tf.int8), tf.uint8), tf.constant((1 << bits) - 1, tf.uint8)
        ), bits
    return unsigned_view(x), bits


@tf_rules.rule(p.population_count_p)
def _population_count(ctx, x):
    bits, _ = _unsigned_bits(ctx, x)
    return cast(tf.raw_ops.PopulationCount(x=bits), x.dtype)


@tf_rules.rule(p.clz_p)
def _clz(ctx, x):
    """A binary search for the highest bit, by operations that TFLite has."""
    bits, width = _unsigned_bits(ctx, x)
    wide = tf.int64 if width == 64 else tf.int32
    bits = tf.cast(bits, wide) if width < 32 else tf.bitcast(bits, wide)
    negative = bits < 0  # the highest of 32 or 64 bits is set
    used = tf.zeros_like(bits)
    for step in (32, 16, 8, 4, 2, 1):
        if step < width:
            high = bits >= 1 << step
            used = tf.where(high, used + step, used)
            bits = tf.where(high, tf.math.floordiv(bits, 1 << step), bits)
    return cast(tf.where(negative, tf.zeros_like(bits), width - used - bits), x.dtype)


def _shift(prim, left: bool, fill_with_sign: bool):
    @tf_rules.rule(prim)
    def rule(ctx, x, y):
        dtype, width = x.dtype, bit_width(ctx.avals_in[0].dtype)
        if is_narrow_int(dtype):
            x, y = tf.cast(x, tf.int32), tf.cast(y, tf.int32)
            if fill_with_sign:  # the top bit, also of unsigned operands
                up = tf.constant(32 - width)
                x = tf.bitwise.right_shift(tf.bitwise.left_shift(x, up), up)
            elif not left:
                x = tf.bitwise.bitwise_and(x, (1 << width) - 1)
        elif not left:
            view = f"{'' if fill_with_sign else 'u'}int{width}"
            x, y = (v if v.dtype.name == view else tf.bitcast(v, tf.as_dtype(view)) for v in (x, y))
        known = static(y)
        move = tf.bitwise.left_shift if left else tf.bitwise.right_shift
        if known is not None and np.all((known >= 0) & (known < width)):
            # TFLite shifts to the right only; it has products of 32 bits.
            factor = left and not ctx.enable_xla and width == 32 and not is_narrow_int(dtype)
            out = x * tf.constant(np.left_shift(np.ones_like(known), known)) if factor else move(x, y)
        else:
            inside = tf.logical_and(y >= scalar(0, y), y < scalar(width, y))
            out = move(x, tf.where(inside, y, scalar(0, y)))
            fill = tf.bitwise.right_shift(x, scalar(width - 1, x)) if fill_with_sign else scalar(0, x)
            out = tf.where(inside, out, fill)
        if is_narrow_int(dtype):
            return cast(out, dtype)
        return out if out.dtype == dtype else tf.bitcast(out, dtype)


_shift(p.shift_left_p, True, False)
_shift(p.shift_right_logical_p, False, False)
_shift(p.shift_right_arithmetic_p, False, True)
