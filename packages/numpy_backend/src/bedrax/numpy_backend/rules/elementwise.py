"""NumPy evaluation of elementwise primitives.

Each primitive has a *kernel* per dtype, made on first use. The kernel checks once that the primitive
takes the dtype. A dtype that NumPy lacks is computed in the next wider one (narrow floats in float32,
narrow integers in int32) and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray, scalar_aval
from bedrax.core.quiet import quietly
from bedrax.lax.primitives import elementwise as p
from bedrax.numpy_backend.numbers import convert, narrow, native
from bedrax.numpy_backend.tables import Exactness, exact_rules, numpy_rules, source_rules

if TYPE_CHECKING:
    from bedrax.core.ir import Eqn
    from bedrax.core.tracing import Primitive
    from bedrax.numpy_backend.program_source import Writer


class Kernels(dict[Any, Any]):
    """`dtype -> function(*arrays)` for one primitive; `compute` sees native dtypes."""

    def __init__(
        self, prim: Primitive, compute: Callable[..., Any], arity: int, params: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.prim: Primitive = prim
        self.compute = compute
        self.arity = arity
        self.params: Any | dict[Any, Any] = params or {}

    def source(self, write: Writer, eqn: Eqn, *operands: str) -> str:
        """Return an expression: one operation of NumPy if that is enough, else a call of the kernel."""
        dtype = eqn.invars[0].aval.dtype
        text = ufunc_source(self.compute, dtype, eqn.outvars[0].aval.dtype, operands, write)
        return text or f"{write.bind(self[dtype], str(self.prim))}({write.arrays(operands)})"

    def __missing__(self, dtype: np.dtype[Any]) -> Callable[..., Any]:
        aval = scalar_aval(dtype)
        out = self.prim.abstract_eval(*[aval] * self.arity, **self.params).dtype
        wide, compute = native(dtype), self.compute
        if dtype.kind == "f":
            compute = _of_floats.get(compute, compute)
        if wide != dtype:

            def kernel(*args):
                y = compute(*[x.astype(wide) for x in args])
                return np.asarray(y, dtype=out) if dtypes.is_native(out) else narrow(y, out)
        elif _gives(compute, dtype, out):
            kernel = compute  # the caller wraps numbers in arrays
        else:

            def kernel(*args):
                y = compute(*args)
                return y if type(y) is np.ndarray and y.dtype == out else np.asarray(y, dtype=out)

        self[dtype] = kernel
        return kernel


_SIGNS = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
    np.negative: "-",
    np.bitwise_and: "&",
    np.bitwise_or: "|",
    np.bitwise_xor: "^",
    np.invert: "~",
    np.equal: "==",
    np.not_equal: "!=",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
}
# The operation on floats of kernels that treat other dtypes differently.
_of_floats: dict[Any, Any] = {}


def _gives(compute, dtype: np.dtype, out: np.dtype) -> bool:
    """Return whether `compute` is an operation of NumPy that gives `out` for operands of `dtype`."""
    if not isinstance(compute, np.ufunc) or not dtypes.is_native(dtype):
        return False
    return compute.resolve_dtypes((dtype,) * compute.nin + (None,) * compute.nout)[-1] == out


def ufunc_source(
    compute: Callable[..., Any], dtype: np.dtype, out: np.dtype, operands: tuple[str, ...], write: Writer | None = None
) -> str | None:
    """Return the expression if the operation is one of NumPy on `dtype`; else None.

    Args:
      write: of the function with the expression. Its arrays that end may be overwritten.
    """
    if dtype.kind == "f":
        compute = _of_floats.get(compute, compute)
    if not _gives(compute, dtype, out):
        return None
    sign = _SIGNS.get(compute)
    if write is not None:
        write.is_new = True
        if write.ending and sign is not None:  # the result does not depend on the loop that NumPy chooses
            return f"np.{compute.__name__}({', '.join((*operands, write.ending[0]))})"
    if sign is None:
        return f"np.{compute.__name__}({', '.join(operands)})"
    return f"{sign}{operands[0]}" if compute.nin == 1 else f"{operands[0]} {sign} {operands[1]}"


def checked(prim: Primitive, *args: np.ndarray[Any, Any], **params: Any) -> ShapedArray | list[ShapedArray]:
    """Apply the shape rule, for the errors it raises."""
    return prim.abstract_eval(*[ShapedArray(x.shape, x.dtype) for x in args], **params)


def unary(prim: Primitive, compute: Callable[..., Any]) -> None:
    """A row: `compute(ndarray) -> ndarray or scalar`."""
    kernels = Kernels(prim, compute, 1)

    def rule(x, **params):
        return quietly(kernels[x.dtype], x)

    numpy_rules.add(prim, rule, "unary")
    source_rules.add(prim, kernels.source)


def nary(prim: Primitive, compute: Callable[..., Any], arity: int = 2) -> None:
    """A row for operands of equal dtype, whose shapes are equal or ()."""
    kernels = Kernels(prim, compute, arity)

    def rule(x, y, **params):
        if x.dtype != y.dtype or (x.shape != y.shape and x.shape and y.shape):
            checked(prim, x, y, **params)
        return quietly(kernels[x.dtype], x, y)

    numpy_rules.add(prim, rule, "nary")
    source_rules.add(prim, kernels.source)


# ---- one operand ---------------------------------------------------------------------------------


def _sign(x):
    if x.dtype.kind == "u":
        return (x != 0).astype(x.dtype)
    y = np.sign(x)
    # NumPy gives +0 for -0.
    return np.where(x == 0, x, y) if x.dtype.kind == "f" else y


def _round_away(x):
    whole = np.trunc(x)
    # The sign is that of x, also where the result is zero.
    return np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(x.dtype.type(1), x), x.dtype.type(0)), x)


def _logistic(x):
    if x.dtype.kind == "c":
        low = x.real < 0
        e, one = np.exp(np.where(low, x, -x)), x.dtype.type(1)
        return np.where(low, e, one) / (one + e)
    # exp of an operand <= 0 cannot overflow.
    e = np.exp(-np.abs(x))
    one = x.dtype.type(1)
    return np.where(x >= 0, one, e) / (one + e)


def _log1p(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    y, a, b = np.array(np.log1p(x)), x.real, x.imag
    # NumPy's real part is the logarithm of |1 + x|, in which small numbers vanish.
    near = (np.abs(a) < 0.5) & (np.abs(b) < 0.5)
    y.real = np.where(near, np.log1p(a * (2 + a) + b * b) / 2, y.real)
    return y


def _log2(x):
    if x.dtype.kind != "c":
        return np.log2(x)
    y, factor = np.log(x), x.real.dtype.type(1 / np.log(2))
    out = np.empty_like(y)
    out.real, out.imag = y.real * factor, y.imag * factor
    return out


for _prim, _compute in (
    (p.neg_p, np.negative),
    (p.sign_p, _sign),
    (p.abs_p, np.abs),
    (p.floor_p, np.floor),
    (p.ceil_p, np.ceil),
    (p.is_finite_p, np.isfinite),
    (p.not_p, np.invert),
    (p.exp_p, np.exp),
    (p.exp2_p, np.exp2),
    (p.expm1_p, np.expm1),
    (p.log_p, np.log),
    (p.log2_p, _log2),
    (p.log1p_p, _log1p),
    (p.logistic_p, _logistic),
    (p.sqrt_p, np.sqrt),
    (p.cbrt_p, np.cbrt),
    (p.rsqrt_p, lambda x: x.dtype.type(1) / np.sqrt(x)),
    (p.square_p, np.square),
    (p.sin_p, np.sin),
    (p.cos_p, np.cos),
    (p.tan_p, np.tan),
    (p.asin_p, np.arcsin),
    (p.acos_p, np.arccos),
    (p.atan_p, np.arctan),
    (p.sinh_p, np.sinh),
    (p.cosh_p, np.cosh),
    (p.tanh_p, np.tanh),
    (p.asinh_p, np.arcsinh),
    (p.acosh_p, np.arccosh),
    (p.atanh_p, np.arctanh),
    (p.real_p, lambda x: x.real.copy()),
    (p.imag_p, lambda x: x.imag.copy()),
    (p.conj_p, np.conj),
):
    unary(_prim, _compute)


@numpy_rules.rule(p.round_p)
def _round(x, *, rounding_method):
    with np.errstate(all="ignore"):
        return _round_kernels[rounding_method][x.dtype](x)


_round_kernels = {
    p.RoundingMethod.AWAY_FROM_ZERO: Kernels(p.round_p, _round_away, 1),
    p.RoundingMethod.TO_NEAREST_EVEN: Kernels(p.round_p, np.rint, 1),
}


numpy_rules.rule(p.copy_p, p.stop_gradient_p)(lambda x: x)
source_rules.add(p.copy_p, lambda write, eqn, x: x)
source_rules.add(p.stop_gradient_p, lambda write, eqn, x: x)


def as_bits(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the elements of an integer array as uint64 bit patterns, and their number of bits."""
    bits = dtypes.itemsize_bits(x.dtype)
    if not dtypes.is_native(x.dtype):
        x = x.astype(np.int8)
    return x.astype(np.uint64) & np.uint64((1 << bits) - 1), bits


@numpy_rules.rule(p.population_count_p)
def _population_count(x):
    checked(p.population_count_p, x)
    bits, _ = as_bits(x)
    return _small_int(np.bitwise_count(bits), x.dtype)


@numpy_rules.rule(p.clz_p)
def _clz(x):
    checked(p.clz_p, x)
    y, bits = as_bits(x)
    for shift in (1, 2, 4, 8, 16, 32):  # every bit below the highest becomes set
        y = y | (y >> np.uint64(shift))
    return _small_int(bits - np.bitwise_count(y).astype(np.int64), x.dtype)


def _small_int(y, dtype):
    y = np.asarray(y).astype(np.int32)
    return y.astype(dtype) if dtypes.is_native(dtype) else narrow(y, dtype)


@numpy_rules.rule(p.integer_pow_p)
def _integer_pow(x, *, y):
    wide = native(x.dtype)
    if wide == x.dtype and y > 0 and x.dtype.kind != "b":
        return np.asarray(quietly(_power_by_squaring, x, y))
    checked(p.integer_pow_p, x, y=y)
    out = np.asarray(quietly(_power_by_squaring, x.astype(wide), y))
    return out if wide == x.dtype else narrow(out, x.dtype)


@source_rules.rule(p.integer_pow_p)
def _integer_pow_source(write, eqn, x):
    if eqn.params["y"] != 2 or not dtypes.is_native(eqn.invars[0].aval.dtype):
        return None
    write.is_new = True
    return f"{x} * {x}"


def _power_by_squaring(x, n: int):
    if n < 0:
        return x.dtype.type(1) / _power_by_squaring(x, -n)
    if n == 0:
        return np.ones_like(x)
    result = None
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if n:
            x = x * x
    return result


# ---- two operands --------------------------------------------------------------------------------


def _div(x, y):
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    one = x.dtype.type(1)
    # NumPy and C leave these results undefined: x / 0 has all bits set, min / -1 wraps to min.
    safe = np.where(y == 0, one, y)
    if x.dtype.kind == "u":
        return np.where(y == 0, ~x.dtype.type(0), x // safe)
    flipped = y == -1
    safe = np.where(flipped, one, safe)
    quotient = x // safe
    quotient = quotient + ((x - quotient * safe != 0) & ((x < 0) != (safe < 0)))  # floor -> truncation
    return np.where(y == 0, x.dtype.type(-1), np.where(flipped, -x, quotient)).astype(x.dtype)


def _rem(x, y):
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    one = x.dtype.type(1)
    safe = np.where(y == 0, one, y)
    if x.dtype.kind == "i":
        safe = np.where(y == -1, one, safe)  # any x leaves 0, the smallest one without a trap
    return np.where(y == 0, x, np.fmod(x, safe))


def _max(x, y):
    out = np.maximum(x, y)
    # NumPy may give either zero; here +0 is above -0.
    return out if x.dtype.kind != "f" or np.all(out) else np.where((x == 0) & (y == 0), x + y, out)


def _min(x, y):
    return -_max(-x, -y) if x.dtype.kind == "f" else np.minimum(x, y)


def _atan2(x, y):
    if x.dtype.kind == "f":
        return np.arctan2(x, y)
    return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))


def _complex(x, y):
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), p.COMPLEX_OF[x.dtype])
    out.real, out.imag = x, y  # a sum with 1j * y would turn infinities into nan
    return out


def _shift(prim, move, seen_as: str):
    """A row: the bits are read as signed ("i") or unsigned ("u") integers; the dtype does not matter."""

    def rule(x, y):
        checked(prim, x, y)
        dtype, bits = x.dtype, dtypes.itemsize_bits(x.dtype)
        if not dtypes.is_native(dtype):
            x, y = x.astype(np.int8), y.astype(np.int8)
        seen = np.dtype(f"{seen_as}{x.dtype.itemsize}")
        unused = seen.type(8 * seen.itemsize - bits)
        inside = (y >= 0) & (y < bits)
        x = x.view(seen) << unused >> unused if unused else x.view(seen)
        if seen_as == "i":
            out = move(x, np.where(inside, y, bits - 1).astype(seen))
        else:
            out = np.where(inside, move(x, np.where(inside, y, 0).astype(seen)), seen.type(0))
        out = np.asarray(out)
        return out.view(dtype) if dtypes.is_native(dtype) else narrow(out.view(np.int8), dtype)

    numpy_rules.add(prim, rule, "nary")


def _mulhi(x, y):
    bits = x.dtype.itemsize * 8
    if bits < 64:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return np.right_shift(x.astype(wide) * y.astype(wide), wide(bits)).astype(x.dtype)
    # Schoolbook multiplication on 32-bit halves; a signed product differs from the unsigned one by
    # x*2^64 where y < 0 and y*2^64 where x < 0.
    a, b = x.astype(np.uint64), y.astype(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    high = a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half)
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.astype(x.dtype)


def total_order_key(x: np.ndarray) -> np.ndarray:
    """Return integers that compare like the floats in the total order of IEEE 754. Integers are unchanged."""
    if not dtypes.issubdtype(x.dtype, np.floating):
        return x if dtypes.is_native(x.dtype) else x.astype(np.int8)
    signed = np.dtype(f"i{x.dtype.itemsize}")
    bits = x.view(signed)
    # Negative floats have their sign bit set and grow downwards: flip the other bits.
    width = dtypes.itemsize_bits(x.dtype)
    mask = signed.type((1 << (width - 1)) - 1)
    if width == x.dtype.itemsize * 8:
        return np.where(bits < 0, bits ^ mask, bits)
    negative = (bits >> (width - 1)) & 1
    return np.where(negative, ~(bits & mask), bits & mask)


def _in_total_order(prim, compare):
    def rule(x, y):
        checked(prim, x, y)
        return np.asarray(quietly(compare, total_order_key(x), total_order_key(y)))

    numpy_rules.add(prim, rule, "nary")


_of_floats.update({_div: np.divide, _rem: np.fmod, _atan2: np.arctan2, _log1p: np.log1p})

for _prim, _compute in (
    (p.add_p, np.add),
    (p.sub_p, np.subtract),
    (p.div_p, _div),
    (p.rem_p, _rem),
    (p.max_p, _max),
    (p.min_p, _min),
    (p.atan2_p, _atan2),
    (p.complex_p, _complex),
    (p.and_p, np.bitwise_and),
    (p.or_p, np.bitwise_or),
    (p.xor_p, np.bitwise_xor),
    (p.eq_p, np.equal),
    (p.ne_p, np.not_equal),
    (p.ge_p, np.greater_equal),
    (p.gt_p, np.greater),
    (p.le_p, np.less_equal),
    (p.lt_p, np.less),
):
    nary(_prim, _compute)
_in_total_order(p.eq_to_p, np.equal)
_in_total_order(p.le_to_p, np.less_equal)
_in_total_order(p.lt_to_p, np.less)
_shift(p.shift_left_p, np.left_shift, "u")
_shift(p.shift_right_logical_p, np.right_shift, "u")
_shift(p.shift_right_arithmetic_p, np.right_shift, "i")


numpy_rules.add(p.add_any_p, numpy_rules[p.add_p], "nary")
source_rules.add(p.add_any_p, source_rules[p.add_p])


_mul_kernels = Kernels(p.mul_p, np.multiply, 2)


@numpy_rules.rule(p.mul_p)
def _mul(x, y, *, out_dtype=None):
    if x.dtype != y.dtype or (x.shape != y.shape and x.shape and y.shape):
        checked(p.mul_p, x, y)
    if out_dtype is not None and out_dtype != x.dtype:
        x, y = convert(x, out_dtype), convert(y, out_dtype)
    return quietly(_mul_kernels[x.dtype], x, y)


@source_rules.rule(p.mul_p)
def _mul_source(write, eqn, x, y):
    same = eqn.outvars[0].aval.dtype == eqn.invars[0].aval.dtype
    return _mul_kernels.source(write, eqn, x, y) if same else None


@numpy_rules.rule(p.mulhi_p)
def _mulhi_rule(x, y):
    if x.dtype != y.dtype or x.dtype.kind not in "iu" or (x.shape != y.shape and x.shape and y.shape):
        checked(p.mulhi_p, x, y)
    with np.errstate(all="ignore"):
        if dtypes.is_native(x.dtype):
            return np.asarray(_mulhi(x, y))
        bits = dtypes.itemsize_bits(x.dtype)
        return narrow(np.asarray((x.astype(np.int32) * y.astype(np.int32)) >> bits), x.dtype)


@numpy_rules.rule(p.nextafter_p)
def _nextafter(x, y):
    checked(p.nextafter_p, x, y)
    return np.asarray(np.nextafter(x, y))


@numpy_rules.rule(p.pow_p)
def _pow(x, y):
    if x.dtype != y.dtype or (x.shape != y.shape and x.shape and y.shape):
        checked(p.pow_p, x, y)
    with np.errstate(all="ignore"):
        if x.dtype == y.dtype:
            return _pow_kernels[x.dtype](x, y)
        wide = native(x.dtype)
        out = _power_of_integers(x.astype(wide), y if dtypes.is_native(y.dtype) else y.astype(np.int32))
    return out if wide == x.dtype else out.astype(x.dtype)


def _power(x, y):
    if x.dtype.kind == "c":
        # 0 ** 0 is 1, and 0 ** y is 0 where y has a positive real part; NumPy gives nan for some.
        return np.where((x == 0) & (y == 0), 1, np.power(x, y)).astype(x.dtype)
    return np.power(x, y)


_pow_kernels = Kernels(p.pow_p, _power, 2)
_of_floats[_power] = np.power


@source_rules.rule(p.pow_p)
def _pow_source(write, eqn, x, y):
    same = eqn.invars[0].aval.dtype == eqn.invars[1].aval.dtype
    return _pow_kernels.source(write, eqn, x, y) if same else None


def _power_of_integers(x, y):
    """Return `x ** y` for integer `y` by repeated squaring: exact in the exponent, of any size."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    negative = y < 0
    left = np.where(negative, 0 - y.astype(np.uint64), y.astype(np.uint64))
    result, base = np.ones(shape, x.dtype), np.broadcast_to(x, shape)
    while np.any(left):
        result = np.where(left & np.uint64(1), result * base, result)
        left = left >> np.uint64(1)
        base = base * base
    return np.where(negative, x.dtype.type(1) / result, result)


# ---- choice --------------------------------------------------------------------------------------

_clamp_kernels = Kernels(p.clamp_p, lambda low, x, high: np.minimum(np.maximum(low, x), high), 3)


@numpy_rules.rule(p.clamp_p)
def _clamp(low, x, high):
    checked(p.clamp_p, low, x, high)
    return _clamp_kernels[x.dtype](low, x, high)


@numpy_rules.rule(p.select_n_p)
def _select_n(which, *cases):
    for case in cases:
        if case.dtype != cases[0].dtype or case.shape != cases[0].shape:
            checked(p.select_n_p, which, *cases)
    if which.dtype == np.bool_ and len(cases) == 2:
        if which.shape and which.shape != cases[0].shape:
            checked(p.select_n_p, which, *cases)
        return np.where(which, cases[1], cases[0])
    checked(p.select_n_p, which, *cases)
    if not dtypes.is_native(which.dtype):
        which = which.astype(np.int8)
    out = cases[0]
    for i, case in enumerate(cases[1:], 1):
        out = np.where(which >= i, case, out)  # an index out of range takes the nearest case
    return out


@source_rules.rule(p.select_n_p)
def _select_n_source(write, eqn, which, *cases):
    if eqn.invars[0].aval.dtype != np.bool_ or len(cases) != 2:
        return None
    return f"np.where({which}, {cases[1]}, {cases[0]})"


# ---- exactness -----------------------------------------------------------------------------------


def _exact(of_floats: Exactness | None, *prims: Primitive) -> None:
    """Rows of operations that are exact on integers and booleans."""

    def rule(types, out_dtype=None, **_):
        dtype = types[0].dtype
        if dtype.kind in "iub":
            return Exactness.BITS if out_dtype in (None, dtype) else None
        return of_floats if dtype in _REALS and out_dtype in (None, dtype) else None

    for prim in prims:
        exact_rules.add(prim, rule)


_BFLOAT16 = np.dtype(dtypes.bfloat16)
_REALS = (*map(np.dtype, ("float16", "float32", "float64")), _BFLOAT16)

for _prim in (p.copy_p, p.stop_gradient_p, p.select_n_p, p.real_p, p.imag_p, p.complex_p):
    exact_rules.add(_prim, lambda types, **params: Exactness.BITS)
_exact(Exactness.BITS, p.is_finite_p)
_exact(
    Exactness.NORMAL,
    *(p.eq_p, p.ne_p, p.lt_p, p.le_p, p.gt_p, p.ge_p),
    *(p.max_p, p.min_p, p.sign_p, p.floor_p, p.ceil_p, p.round_p),
)
_exact(Exactness.ROUNDED, p.add_p, p.add_any_p, p.sub_p, p.mul_p, p.sqrt_p, p.square_p)
_exact(
    None,
    *(p.rem_p, p.clamp_p, p.and_p, p.or_p, p.xor_p, p.not_p, p.mulhi_p, p.population_count_p, p.clz_p),
    *(p.shift_left_p, p.shift_right_logical_p, p.shift_right_arithmetic_p),
)


@exact_rules.rule(p.neg_p, p.abs_p)
def _of_sign_is_exact(types, **_):
    dtype = types[0].dtype
    if dtype in (np.float16, _BFLOAT16):
        return Exactness.NORMAL  # computed in float32, which changes the bits of a signaling NaN
    return Exactness.BITS if dtype.kind in "iuf" else None


@exact_rules.rule(p.div_p)
def _div_is_exact(types, **_):
    dtype = types[0].dtype
    if dtype.kind in "iu":
        return Exactness.BITS
    by_scalar = types[1].shape == () != types[0].shape  # XLA multiplies by the reciprocal, also of a broadcast scalar
    return Exactness.ALONE if dtype in _REALS and not by_scalar else None


@exact_rules.rule(p.integer_pow_p)
def _integer_pow_is_exact(types, *, y):
    dtype = types[0].dtype
    if dtype.kind in "iu":
        return Exactness.BITS if y >= 0 else None
    return Exactness.ROUNDED if dtype in _REALS and y == 2 else None
