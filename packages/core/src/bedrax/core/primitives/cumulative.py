"""Cumulative reductions: the result at each position combines all elements up to it.

`prefix_scan` is the parallel scan by which XLA computes them (pairs first, then the odd positions
by recursion, then the even ones: Ladner and Fischer 1980; about 2 n combinations, 2 log2 n deep).
`linear_recurrence` is the one formula behind their derivatives.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.core.primitives import elementwise, reductions
from bedrax.core.primitives.elementwise import INEXACT, NUMBER
from bedrax.core.primitives.shaping import concatenate, pad, reshape, rev, slice_in_dim, stack
from bedrax.core.tracing import Primitive


def _cumulative(name: str, categories) -> Primitive:
    prim = Primitive(name, "cumulative")
    ok = elementwise.accepted(categories)

    @prim.abstract
    def shape_rule(operand, *, axis, reverse):
        if not ok[operand.dtype]:
            raise elementwise.dtype_refused(name, operand.dtype, categories)
        if axis < 0:
            raise ValueError(f"{name} takes a nonnegative axis, got {axis}: XLA operations do not allow negative axes")
        if axis >= len(operand.shape):
            raise ValueError(f"axis {axis} is out of bounds for array of shape {operand.shape}")
        return operand

    return prim


cumsum_p = _cumulative("cumsum", NUMBER)
cumprod_p = _cumulative("cumprod", NUMBER)
cummax_p = _cumulative("cummax", NUMBER)
cummin_p = _cumulative("cummin", NUMBER)
cumlogsumexp_p = _cumulative("cumlogsumexp", INEXACT)


def cumsum(operand, axis: int = 0, reverse: bool = False):
    """Sums of all elements up to each position along `axis` (from each position on, if `reverse`).

    Args:
      operand: array of numbers.
      axis: in ``[0, rank)``.
      reverse: sum from the end.

    Returns:
      An array of the operand's shape and dtype.
    """
    return cumsum_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))


def cumprod(operand, axis: int = 0, reverse: bool = False):
    """Products of all elements up to each position; as `cumsum`."""
    return cumprod_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))


def cummax(operand, axis: int = 0, reverse: bool = False):
    """The largest of all elements up to each position (NaN from the first NaN on); as `cumsum`."""
    return cummax_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))


def cummin(operand, axis: int = 0, reverse: bool = False):
    """The smallest of all elements up to each position (NaN from the first NaN on); as `cumsum`."""
    return cummin_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))


def cumlogsumexp(operand, axis: int = 0, reverse: bool = False):
    """The logarithm of the cumulative sum of exponentials, without overflow; as `cumsum`."""
    return cumlogsumexp_p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))


def log_add_exp(x, y):
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
    from bedrax.core.primitives.shaping import zeros_of

    return zeros_of(aval_of(x).strip_weak_type())


# What each combines two prefixes with.
combiners: dict[Primitive, Callable] = {
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


def identity(prim: Primitive, dtype):
    """The neutral element of a cumulative reduction."""
    return reductions.identities[_IDENTITY_OF[prim]](dtype)


def shifted(x, fill, axis: int, reverse: bool = False):
    """`x` moved by one position along `axis`: what was before each position; `fill` before the first."""
    dtype = aval_of(x).dtype
    config = [(0, 0, 0)] * len(aval_of(x).shape)
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, np.asarray(fill).astype(dtype), config)


def prefix_scan(combine: Callable[[list, list], list], operands: list, axis: int, reverse: bool = False) -> list:
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


def linear_recurrence(a, b, axis: int, reverse: bool = False):
    """``y[k] = a[k] y[k-1] + b[k]`` with ``y[-1] = 0``, along an axis; linear in `b`."""
    mul, add = elementwise.mul, elementwise.add
    combine = lambda x, y: [mul(x[0], y[0]), add(mul(x[1], y[0]), y[1])]
    return prefix_scan(combine, [a, b], axis, reverse)[1]


def composed(prim: Primitive) -> Callable:
    """The primitive as a `prefix_scan`; half-precision sums and products are formed in float32."""
    combine = combiners[prim]

    def fun(x, *, axis, reverse):
        from bedrax.core.primitives.conversions import convert_element_type

        dtype = aval_of(x).dtype
        narrow = prim not in (cummax_p, cummin_p) and dtype.itemsize < 4 and dtypes.issubdtype(dtype, np.floating)
        if narrow:
            x = convert_element_type(x, np.float32)
        (out,) = prefix_scan(lambda p, q: [combine(p[0], q[0])], [x], axis, reverse)
        return convert_element_type(out, dtype) if narrow else out

    return fun


__all__ = [
    "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod", "cumprod_p", "cumsum",
    "cumsum_p",
]  # fmt: skip
