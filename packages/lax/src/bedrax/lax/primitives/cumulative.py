"""Cumulative reductions: the result at each position combines all elements up to it.

`linear_recurrence` is the one primitive behind their derivatives. There are two ways to compute all
of them: `prefix_scan` in parallel (pairs first, then the odd positions by recursion, then the even
ones: Ladner and Fischer 1980; about 2 n combinations, 2 log2 n deep), and `loop_scan` one position
after the other; its program has the same size for every axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bedrax.core import config, dims, dtypes, positions
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.defining import named
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike
from bedrax.lax.dynamic_slices import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from bedrax.lax.elementwise_kinds import check_numbers
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives import elementwise, reductions
from bedrax.lax.primitives.control_flow import while_loop
from bedrax.lax.primitives.conversions import convert_element_type
from bedrax.lax.primitives.elementwise import INEXACT, NUMBER
from bedrax.lax.primitives.shaping import concatenate, pad, reshape, rev, slice_in_dim, stack, transpose

pure_shapes.add(__name__)


def _cumulative(name: str, categories: tuple[str, ...], what: str, example: str) -> tuple[Primitive, Any]:
    """A cumulative reduction: the primitive and its function."""
    prim = Primitive(name, "cumulative")
    ok = elementwise.accepted(categories)

    @prim.abstract
    def shape_rule(operand, *, axis, reverse):
        if not ok[operand.dtype]:
            raise elementwise.dtype_refused(name, operand.dtype, categories)
        if axis < 0:
            raise ValueError(f"{name}: axis={axis} is negative; count from the first, 0..{len(operand.shape) - 1}")
        if axis >= len(operand.shape):
            raise ValueError(f"{name}: axis {axis} is out of bounds for an array of shape {operand.shape}")
        return operand

    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        return prim.bind(operand, axis=dims.integer(axis, "axis"), reverse=bool(reverse))

    text = f"""{what} of all elements up to each position along `axis` (from each position on, if `reverse`).

    Args:
      operand: array, {" or ".join(categories)}.
      axis: in ``[0, rank)``.
      reverse: combine from the end.

    Returns:
      An array of the operand's shape and dtype.
    """
    return prim, named(function, name, __name__, text, example)


cumsum_p, cumsum = _cumulative(
    "cumsum",
    NUMBER,
    "Sums",
    example="""
    >>> lax.cumsum(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[1, 3],
           [3, 7]], dtype=int32)
    """,
)
cumprod_p, cumprod = _cumulative(
    "cumprod",
    NUMBER,
    "Products",
    example="""
    >>> lax.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """,
)
cummax_p, cummax = _cumulative(
    "cummax",
    NUMBER,
    "The largest (NaN from the first NaN on)",
    example="""
    >>> lax.cummax(jnp.array([1, 3, 2, 5]))
    Array([1, 3, 3, 5], dtype=int32)
    """,
)
cummin_p, cummin = _cumulative(
    "cummin",
    NUMBER,
    "The smallest (NaN from the first NaN on)",
    example="""
    >>> lax.cummin(jnp.array([3, 1, 2, 0]), reverse=True)
    Array([0, 0, 0, 0], dtype=int32)
    """,
)
cumlogsumexp_p, cumlogsumexp = _cumulative(
    "cumlogsumexp",
    INEXACT,
    "Logarithms of sums of exponentials",
    example="""
    >>> lax.cumlogsumexp(jnp.zeros(3))
    Array([0.       , 0.6931472, 1.0986123], dtype=float32)
    """,
)


def log_add_exp(x: ArrayLike, y: ArrayLike) -> Any:
    """``log(exp(x) + exp(y))`` without overflow, for values of equal shape and floating or complex dtype."""
    sub, add, exp = elementwise.sub, elementwise.add, elementwise.exp
    dtype = aval_of(x).dtype
    if dtype.kind == "c":
        largest = elementwise.max(elementwise.real(x), elementwise.real(y))
        finite = elementwise.is_finite(largest)
        m = elementwise.select(finite, largest, _zeros_like(largest))
        m = elementwise.complex(m, _zeros_like(m))
        return add(m, elementwise.log(add(exp(sub(x, m)), exp(sub(y, m)))))
    gap = sub(x, y)
    both = add(elementwise.max(x, y), elementwise.log1p(exp(elementwise.neg(elementwise.abs(gap)))))
    # Two equal infinities have no gap; their sum is the answer, as it is for NaN.
    return elementwise.select(elementwise.ne(gap, gap), add(x, y), both)


def _zeros_like(x):
    return zeros_of(aval_of(x).strip_weak_type())


# The function with which each combines two prefixes.
combiners: dict[Primitive, Callable[..., Any]] = {
    cumsum_p: elementwise.add,
    cumprod_p: elementwise.mul,
    cummax_p: elementwise.max,
    cummin_p: elementwise.min,
    cumlogsumexp_p: log_add_exp,
}

_IDENTITY_OF = {
    cumsum_p: reductions.reduce_sum_p,
    cumprod_p: reductions.reduce_prod_p,
    cummax_p: reductions.reduce_max_p,
    cummin_p: reductions.reduce_min_p,
    cumlogsumexp_p: reductions.reduce_max_p,
}


def identity(prim: Primitive, dtype: np.dtype[Any]) -> np.generic:
    """The neutral element of a cumulative reduction."""
    return reductions.identities[_IDENTITY_OF[prim]](dtype)


def shifted(x: Array, fill: int | np.generic, axis: int, reverse: bool = False) -> Array:
    """`x` moved by one position along `axis`: the element before each position; `fill` before the first."""
    dtype = aval_of(x).dtype
    config = [(0, 0, 0)] * len(aval_of(x).shape)
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, np.asarray(fill).astype(dtype), config)


def prefix_scan(
    combine: Callable[[list[Any], list[Any]], list[Any]], operands: list[Any], axis: int, reverse: bool = False
) -> list[Any]:
    """All prefixes of lists of arrays, combined along an axis.

    Args:
      combine: associative, elementwise; takes two lists of equally shaped arrays, the earlier first.
      operands: list of arrays of one shape.
      axis: along which axis; of known size.
      reverse: suffixes instead.

    Returns:
      A list like `operands`.
    """
    if reverse:
        out = prefix_scan(combine, [rev(x, (axis,)) for x in operands], axis)
        return [rev(x, (axis,)) for x in out]
    n = aval_of(operands[0]).shape[axis]
    if n < 2:
        return list(operands)
    cut = lambda xs, start, stop, step=1: [slice_in_dim(x, start, stop, step, axis) for x in xs]
    odd = prefix_scan(combine, combine(cut(operands, 0, n - 1, 2), cut(operands, 1, n, 2)), axis)
    before = odd if n % 2 else cut(odd, 0, n // 2 - 1)
    even = cut(operands, 0, 1)
    if n > 2:
        even = [concatenate([x, y], axis) for x, y in zip(even, combine(before, cut(operands, 2, n, 2)))]
    return [_interleave(x, y, axis) for x, y in zip(even, odd)]


def _interleave(even, odd, axis: int):
    """``even[0], odd[0], even[1], ...``; `even` may be longer by one."""
    shape = aval_of(odd).shape
    pairs = shape[axis]
    longer = aval_of(even).shape[axis] > pairs
    first = slice_in_dim(even, 0, pairs, 1, axis) if longer else even
    woven = reshape(stack([first, odd], axis + 1), (*shape[:axis], 2 * pairs, *shape[axis + 1 :]))
    return concatenate([woven, slice_in_dim(even, pairs, pairs + 1, 1, axis)], axis) if longer else woven


_AT_ONCE = 4  # positions of a single sequence in one step (measured on CPU: 1.8 times as fast as one)
_CONTIGUOUS = 64  # elements of a last axis from which on transposing pays (measured on CPU)


def loop_scan(
    combine: Callable[..., Any],
    x: np.ndarray[Any, Any],
    others: list[Any],
    axis: int,
    reverse: bool = False,
    wide: type | None = None,
) -> Array:
    """All prefixes along an axis, one position after the other.

    Args:
      combine: ``combine(result so far, element of x, *elements of others)``.
      x: array; its first element is the first result.
      others: arrays of the same shape and dtype.
      axis, reverse: as in `prefix_scan`; the axis may be symbolic.
      wide: dtype in which the result so far is carried; default: that of `x`.
    """
    n = aval_of(x).shape[axis]
    if dims.is_constant_dim(n) and n < 2:
        return x
    narrow = aval_of(x).dtype
    to = (lambda v, dtype: v) if wide is None else convert_element_type
    counting = positions.dtype_for(n)
    steps = counting.type(n) if dims.is_constant_dim(n) else convert_element_type(dims.dim_as_value(n), counting)
    shape = aval_of(x).shape
    rank = len(shape)
    if 0 < axis == rank - 1 and dims.is_constant_dim(n) and n >= _CONTIGUOUS:
        # Neighbours in memory would be visited one step after the other: make each step a row.
        front = lambda v: transpose(v, (axis, *range(axis)))
        out = loop_scan(combine, front(x), [front(v) for v in others], 0, reverse, wide)
        return transpose(out, (*range(1, rank), 0))
    # A step of one number waits for the state of the step before, in memory. So each step takes several positions.
    single = dims.is_constant_shape(shape) and math.prod(shape) == n >= _CONTIGUOUS
    count = _AT_ONCE if single else 1
    head = 1 + (n - 1) % count if single else 1

    def combined(so_far, windows, size):
        """The result after some positions, and the results at them; `windows` are their elements."""
        results = [None] * size
        for j in range(size)[::-1] if reverse else range(size):
            here = [w if size == 1 else slice_in_dim(w, j, j + 1, 1, axis) for w in windows]
            elements = [to(v, wide) for v in here]
            so_far = elements[0] if so_far is None else combine(so_far, *elements)
            results[j] = to(so_far, narrow)
        return so_far, results[0] if size == 1 else concatenate(results, axis)

    cut = lambda v, i, size: dynamic_slice_in_dim(v, i, size, axis, allow_negative_indices=False)
    put = lambda v, part, i: dynamic_update_slice_in_dim(v, part, i, axis, allow_negative_indices=False)
    # The counter is a position, also backwards: XLA computes an index for each operand.
    by, zero = counting.type(count), counting.type(0)
    if reverse:
        first = elementwise.sub(steps, counting.type(head))
        second, following = elementwise.sub(first, by), elementwise.sub
    else:
        first, second, following = zero, counting.type(head), elementwise.add

    def step(state):
        # The results replace `x` in place: positions are read, then written.
        i, so_far, out = state
        so_far, part = combined(so_far, [cut(v, i, count) for v in (out, *others)], count)
        return following(i, by), so_far, put(out, part, i)

    def inside(state):
        return elementwise.ge(state[0], zero) if reverse else elementwise.lt(state[0], steps)

    with config.enable_x64(True):  # so that a 64-bit `wide` is one; every other type here is explicit
        so_far, part = combined(None, [cut(v, first, head) for v in (x, *others)], head)
        return while_loop(inside, step, (second, so_far, put(x, part, first) if head > 1 else x))[2]


linear_recurrence_p: Final = Primitive("linear_recurrence", "cumulative")


@linear_recurrence_p.abstract
def _linear_recurrence_shape(a, b, *, axis, reverse):
    check_numbers("linear_recurrence", a, b)
    if not dims.same_shape(a.shape, b.shape) or a.dtype != b.dtype:
        raise TypeError(f"linear_recurrence needs operands of one type, got {a.str_short()} and {b.str_short()}")
    return b


def linear_recurrence(a: ArrayLike, b: Any, axis: int, reverse: bool = False) -> Any:
    """``y[k] = a[k] y[k-1] + b[k]`` with ``y[-1] = 0``, along an axis; linear in `b`.

    Args:
      a, b: arrays of one shape and (floating or complex) dtype; the first `a` is not used.
      axis: in ``[0, rank)``.
      reverse: from the end: ``y[k] = a[k] y[k+1] + b[k]``.
    """
    return linear_recurrence_p.bind(a, b, axis=axis, reverse=reverse)


def _affine(x: list, y: list) -> list:
    """Composition of the maps ``v -> x[0] v + x[1]``, then that of `y`."""
    mul, add = elementwise.mul, elementwise.add
    return [mul(x[0], y[0]), add(mul(x[1], y[0]), y[1])]


def parallel(prim: Primitive) -> Callable[..., Any]:
    """The primitive by `prefix_scan`; half-precision sums and products are formed in float32."""
    combine = _affine if prim is linear_recurrence_p else lambda p, q: [combiners[prim](p[0], q[0])]

    def fun(*operands, axis, reverse):
        dtype = aval_of(operands[0]).dtype
        narrow = prim not in (cummax_p, cummin_p) and dtype.itemsize < 4 and dtypes.issubdtype(dtype, np.floating)
        if narrow:
            operands = [convert_element_type(x, np.float32) for x in operands]
        out = prefix_scan(combine, list(operands), axis, reverse)[-1]
        return convert_element_type(out, dtype) if narrow else out

    return fun


_WIDE = {np.dtype(np.complex64): np.complex128, np.dtype(np.float64): None, np.dtype(np.complex128): None}


def sequential(prim: Primitive) -> Callable[..., Any]:
    """The primitive by `loop_scan`; sums that floating-point rounding would spoil are carried in 64 bits."""
    wide_of = lambda dtype: _WIDE.get(dtype, np.float64) if dtypes.issubdtype(dtype, np.inexact) else None
    if prim is linear_recurrence_p:
        step = lambda y, b, a: elementwise.add(elementwise.mul(a, y), b)
        return lambda a, b, *, axis, reverse: loop_scan(step, b, [a], axis, reverse, wide_of(aval_of(b).dtype))
    exact = prim in (cummax_p, cummin_p)
    return lambda x, *, axis, reverse: loop_scan(
        combiners[prim], x, [], axis, reverse, None if exact else wide_of(aval_of(x).dtype)
    )


__all__ = [
    "cumlogsumexp",
    "cumlogsumexp_p",
    "cummax",
    "cummax_p",
    "cummin",
    "cummin_p",
    "cumprod",
    "cumprod_p",
    "cumsum",
    "cumsum_p",
]
