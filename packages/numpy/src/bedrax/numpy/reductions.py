"""Reductions along axes: sums and products, extremes, truth, means and variances.

All take `axis` (None, an int, or several), `keepdims`, and a mask `where` of the elements that count.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, positions
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, Axis, DTypeLike
from bedrax.lax.operators import (
    _select,
    bitwise_and,
    bitwise_or,
    equal,
    less,
    less_equal,
    not_equal,
    subtract,
    true_divide,
)
from bedrax.lax.primitives import elementwise as ops
from bedrax.lax.primitives import reductions as reduce_ops
from bedrax.lax.promotion import operand
from bedrax.numpy.arguments import array, as_bool, axes_tuple, axis_index, mask_of, refuse_out
from bedrax.numpy.manipulation import broadcast_to
from bedrax.numpy.selection import choose_where

_BOOL = dtypes.bool_dtype


def normalize_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """`axis` as sorted distinct axes in ``range(ndim)``.

    Raises:
      TypeError: an axis is traced. ValueError: it is out of bounds or given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if type(axis) is tuple and axis == tuple(range(ndim)):
        return tuple(range(ndim))
    if isinstance(axis, list) or (isinstance(axis, np.ndarray) and axis.ndim):  # one of rank 0 is one axis
        axis = tuple(axis)
    return tuple(sorted(axes_tuple(axis, ndim)))


def _keep(out: Any, shape: tuple, axes: tuple) -> Any:
    return lax.reshape(out, tuple([1 if i in axes else n for i, n in enumerate(shape)]))


def _masked(x: Any, where: Any, value: Any, name: str) -> Any:
    mask = mask_of(name, where)
    rank = len(aval_of(mask).shape)
    if 0 < rank < len(aval_of(x).shape):  # a mask is not an operand whose rank is promoted
        mask = broadcast_to(mask, aval_of(x).shape)
    return choose_where(mask, x, np.asarray(value).astype(aval_of(x).dtype)[()])


_ACCUMULATED = {d: np.dtype(np.float32) for d in dtypes.float_dtypes if dtypes.itemsize_bits(d) <= 16}


def _accumulation(dtype: Any) -> Any:
    """The dtype in which sums of `dtype` are computed: float32 for half precision, which is too narrow."""
    return _ACCUMULATED.get(dtype, dtype)


def wide_integer(dtype: DTypeLike) -> Any:
    """The dtype of sums of integers and bools that are promoted."""
    if dtype == _BOOL or dtypes.is_signed_integer(dtype):
        wide = dtypes.default_int_dtype()
    else:
        wide = dtypes.default_uint_dtype()
    return wide if dtypes.itemsize_bits(wide) > dtypes.itemsize_bits(dtype) else dtype


def _fold(
    name: str, what: str, on_numbers: tuple, on_bools: tuple, identity: int, example: str
) -> Callable[..., Array]:
    """The reduction of a sum or product, and the operation that adds an initial value."""

    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Array:
        if out is not None:
            refuse_out(name, out)
        x = operand(name, a)
        aval = aval_of(x)
        own, weak = aval.dtype, aval.weak_type
        if dtype is not None:
            target, weak = dtypes.explicit_dtype(dtype, name), False
        elif dtypes.is_inexact(own):
            target, weak = own, False
        elif promote_integers or own == _BOOL:
            target, weak = (wide_integer(own) if promote_integers else dtypes.default_int_dtype()), False
        else:
            target = own
        shape = aval.shape
        axes = normalize_axes(axis, len(shape))
        fold, join = on_numbers
        if target == _BOOL:  # a sum of booleans is "or", a product is "and"
            work = _BOOL
            x = as_bool(x)
            fold, join = on_bools
        else:
            work = _accumulation(target)
            if own != work or (weak != aval.weak_type and work == own):
                x = lax.convert_to(x, work, weak)
        if where is not None:
            x = _masked(x, where, identity, name)
        result = fold(x, axes) if axes else lax.asarray(x)
        if initial is not None:
            start = lax.convert_element_type(initial, work)
            if aval_of(start).shape:
                raise ValueError(f"initial must be a scalar, got shape {aval_of(start).shape}")
            result = join(result, start)
        if keepdims:
            result = _keep(result, shape, axes)
        return result if work == target else lax.convert_to(result, target, weak)

    text = f"""The {what} of the elements along axes.

    Args:
      a: array of numbers.
      axis: None (all), one axis, or several.
      dtype: of the result; default: that of `a`, integers at least as wide as the default integer.
      out: must be None.
      keepdims: keep the reduced axes with length 1.
      initial: a scalar to start from.
      where: mask, broadcast with `a`, of the elements that count.
      promote_integers: whether narrow integers become wider ones.
    """
    static = ("axis", "dtype", "out", "keepdims", "promote_integers")
    named(function, name, __name__, text, example)
    return one_program(function, static=static, arrays=("initial", "where"))


sum: Final = _fold(
    "sum",
    "sum",
    (reduce_ops.reduce_sum, lax.add),
    (reduce_ops.reduce_or, lax.bitwise_or),
    0,
    example="""
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.sum(x)
    Array(10, dtype=int32)
    >>> jnp.sum(x, axis=0)
    Array([4, 6], dtype=int32)
    >>> jnp.sum(x, axis=1, keepdims=True)
    Array([[3],
           [7]], dtype=int32)
    >>> jnp.sum(x, where=x > 1, initial=100)
    Array(109, dtype=int32)
    """,
)
_sum: Final = sum.__wrapped__  # without the test whether it is one program

prod: Final = _fold(
    "prod",
    "product",
    (reduce_ops.reduce_prod, lax.mul),
    (reduce_ops.reduce_and, lax.bitwise_and),
    1,
    example="""
    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int32)
    """,
)


def _extreme(
    name: str, what: str, bound: str, reduce: Callable, combine: Callable, identity: Callable, example: str
) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """The public function of an extreme, and its computation under another name: ``(name, a, axis, ...)``."""

    def function(
        a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Array:
        refuse_out(name, out)
        return compute(name, a, axis, keepdims, initial, where)

    def compute(name: str, a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Array:
        x = operand(name, a)
        aval = aval_of(x)
        shape = aval.shape
        axes = normalize_axes(axis, len(shape))
        if where is not None and initial is None:
            raise ValueError(f"jnp.{name}: the mask may choose no element; pass initial, the result for none")
        if initial is None and builtins.any(dims.definitely_equal(shape[i], 0) for i in axes):
            raise ValueError(
                coded(
                    "BX-EMPTY", f"jnp.{name} of no elements, shape {shape} along {axes}, has no identity; pass initial"
                )
            )
        if aval.weak_type:
            x = lax.convert_to(x, aval.dtype, False)
        if where is not None:
            x = _masked(x, where, identity(aval.dtype), name)
        result = reduce(x, axes) if axes else lax.asarray(x)
        if initial is not None:
            start = lax.convert_element_type(initial, aval.dtype)
            if aval_of(start).shape:
                raise ValueError(f"initial must be a scalar, got shape {aval_of(start).shape}")
            result = combine(result, start)
        return _keep(result, shape, axes) if keepdims else result

    text = f"""The {what} element along axes; nan if there is one.

    Args:
      a: array.
      axis, out, keepdims: as in `sum`.
      initial: {bound} bound of the result; needed where there may be no element.
      where: mask of the elements that count; needs `initial`.

    Raises:
      ValueError: there is no element and no `initial`.
    """
    named(function, name, __name__, text, example)
    return one_program(function, static=("axis", "out", "keepdims"), arrays=("initial", "where")), compute


max, _max = _extreme(
    "max",
    "largest",
    "a lower",
    reduce_ops.reduce_max,
    lax.max,
    reduce_ops.lowest,
    example="""
    >>> jnp.amax(jnp.array([[1, 5], [7, 2]]), axis=0)
    Array([7, 5], dtype=int32)
    """,
)
min, _min = _extreme(
    "min",
    "smallest",
    "an upper",
    reduce_ops.reduce_min,
    lax.min,
    reduce_ops.greatest,
    example="""
    >>> jnp.amin(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """,
)


@one_program(static=("axis", "out", "keepdims"), arrays=("initial", "where"))
def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The smallest and the largest element along axes; nan if there is one.

    Args:
      a: array.
      axis, out, keepdims: as in `sum`.
      initial: an upper bound of the smallest and a lower bound of the largest element: one scalar for both, or a tuple
        of two. Needed if there may be no element.
      where: mask of the elements that count; needs `initial`.

    Returns:
      ``(smallest, largest)``, in the dtype of `a`.

    Raises:
      ValueError: there is no element and no `initial`; `initial` is a tuple of another length, or holds no scalars.

    Examples:

      >>> jnp.minmax(jnp.array([[2, 5, 1], [3, -7, 4]]), axis=1)
      (Array([ 1, -7], dtype=int32), Array([5, 4], dtype=int32))
    """
    refuse_out("minmax", out)
    bounds = initial if isinstance(initial, tuple) else (initial, initial)
    if len(bounds) != 2:
        raise ValueError(f"jnp.minmax: initial is a scalar or a pair of scalars, got {len(bounds)} values")
    return tuple(find("minmax", a, axis, keepdims, bound, where) for find, bound in zip((_min, _max), bounds))


amax: Final = max
amin: Final = min


def _truth(name: str, which: str, reduce: Callable, identity: bool, example: str) -> Callable[..., Array]:
    def function(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Array:
        refuse_out(name, out)
        x = as_bool(operand(name, a))
        shape = aval_of(x).shape
        axes = normalize_axes(axis, len(shape))
        if where is not None:
            x = _masked(x, where, identity, name)
        result = reduce(x, axes) if axes else lax.asarray(x)
        return _keep(result, shape, axes) if keepdims else result

    named(function, name, __name__, f"Whether {which} true (not zero), along axes; arguments as in `sum`.", example)
    return one_program(function, static=("axis", "out", "keepdims"), arrays=("where",))


all: Final = _truth(
    "all",
    "all elements are",
    reduce_ops.reduce_and,
    True,
    example="""
    >>> x = jnp.array([[True, False], [True, True]])
    >>> jnp.all(x)
    Array(False, dtype=bool)
    >>> jnp.all(x, axis=0)
    Array([ True, False], dtype=bool)
    >>> jnp.all(x, axis=1, keepdims=True)
    Array([[False],
           [ True]], dtype=bool)
    """,
)
any: Final = _truth(
    "any",
    "some element is",
    reduce_ops.reduce_or,
    False,
    example="""
    >>> x = jnp.array([[False, False], [True, False]])
    >>> jnp.any(x)
    Array(True, dtype=bool)
    >>> jnp.any(x, axis=1)
    Array([False,  True], dtype=bool)
    """,
)


def _order_of_complex(x, axis: int):
    """The rank of complex numbers along an axis in their lexicographic order; equal ones have equal ranks, NaN has NaN."""
    re, im = lax.expand_dims(lax.real(x), (axis + 1,)), lax.expand_dims(lax.imag(x), (axis + 1,))
    swap = lambda v: lax.transpose(v, [*range(axis), axis + 1, axis, *range(axis + 2, x.ndim + 1)])
    below = bitwise_or(less(swap(re), re), bitwise_and(equal(swap(re), re), less(swap(im), im)))
    rank = lax.reduce_sum(lax.convert_element_type(below, np.float32), (axis + 1,))
    return choose_where(
        bitwise_or(not_equal(lax.real(x), lax.real(x)), not_equal(lax.imag(x), lax.imag(x))), np.float32(np.nan), rank
    )


def _position(name: str, what: str, find: Callable, example: str) -> Callable[..., Array]:
    def function(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        refuse_out(name, out)
        x = array(name, a)
        shape = x.shape
        if axis is None:
            x, where = lax.reshape(x, (dims.size(shape),)), 0
        else:
            where = axis_index(axis, x.ndim)
        if dims.definitely_equal(x.shape[where], 0):
            raise ValueError(coded("BX-EMPTY", f"jnp.{name} of an empty axis, of shape {shape}: there is no element"))
        if dtypes.is_complex(x.dtype):
            x = _order_of_complex(x, where)
        result = find(x, where, dtypes.default_int_dtype())
        if not keepdims:
            return result
        return _keep(result, shape, tuple(range(len(shape))) if axis is None else (where,))

    text = f"""The index of the {what} element along an axis, or in the flattened array; the first of equal ones.

    Args:
      a: array.
      axis: the axis, or None to flatten.
      out: must be None.
      keepdims: keep the axis (or all) with length 1.

    Raises:
      ValueError: there is no element.
    """
    return one_program(named(function, name, __name__, text, example), static=("axis", "out", "keepdims"))


argmax: Final = _position(
    "argmax",
    "largest",
    lax.argmax,
    example="""
    >>> x = jnp.array([[1, 9, 9], [7, 2, 3]])
    >>> jnp.argmax(x)
    Array(1, dtype=int32)
    >>> jnp.argmax(x, axis=1)
    Array([1, 0], dtype=int32)
    """,
)
argmin: Final = _position(
    "argmin",
    "smallest",
    lax.argmin,
    example="""
    >>> jnp.argmin(jnp.array([[1, 0, 9], [7, 2, 2]]), axis=1, keepdims=True)
    Array([[1],
           [1]], dtype=int32)
    """,
)


def _float_target(name: str, dtype: Any, own: Any) -> Any:
    if dtype is None and dtypes.is_inexact(own):
        return own
    return dtypes.to_inexact_dtype(own) if dtype is None else dtypes.explicit_dtype(dtype, name)


def _count(x: Any, axes: tuple, where: Any, dtype: Any, keepdims: bool) -> Any:
    """The number of elements that count: a dimension, or an array if there is a mask."""
    shape = aval_of(x).shape
    if where is None:
        n = dims.size([shape[i] for i in axes])
        if dims.is_constant_dim(n):
            return dtype.type(n)
        return lax.convert_element_type(dims.dim_as_value(n), dtype)
    mask = broadcast_to(mask_of("mean", where), shape)
    return sum(mask, axes, dtype=dtype, keepdims=keepdims)


@one_program(static=("axis", "dtype", "out", "keepdims"), arrays=("where",))
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements along axes; nan if there are none.

    Args:
      a: array of numbers.
      axis, out, keepdims, where: as in `sum`.
      dtype: in which to compute and return; default: that of `a`, or float.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 5]])
      >>> jnp.mean(x)
      Array(2.75, dtype=float32)
      >>> jnp.mean(x, axis=0)
      Array([2. , 3.5], dtype=float32)
      >>> jnp.mean(x, where=x > 1)
      Array(3.3333333, dtype=float32)
    """
    if out is not None:
        refuse_out("mean", out)
    x = operand("mean", a)
    aval = aval_of(x)
    own = aval.dtype
    target = _float_target("mean", dtype, own)
    axes = normalize_axes(axis, len(aval.shape))
    work = _accumulation(target) if dtypes.is_inexact(target) else dtypes.default_float_dtype()
    total = _sum(x, axes, None if work is own else work, None, keepdims, where=where)
    result = lax.div(total, _count(x, axes, where, work, keepdims))
    return result if work == target else lax.convert_element_type(result, target)


_mean = mean  # where a parameter has the name


def check_variance_dtype(name: str, dtype: Any) -> None:
    """Raise if the argument `dtype` of function `name` is not that of floats or complex numbers."""
    if dtype is not None and not dtypes.is_inexact(dtypes.as_dtype(dtype)):
        raise ValueError(
            f"jnp.{name}: dtype argument must be inexact, got {dtypes.as_dtype(dtype)}; convert the result instead"
        )


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"), arrays=("where", "mean"))
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: Any = None,
) -> Array:
    """The variance of the elements along axes: the mean of squared distances from the mean.

    Args:
      a: array of numbers; the result is real.
      axis, out, keepdims, where: as in `sum`.
      dtype: in which to compute; also the dtype of the result.
      ddof, correction: the sum of squares is divided by ``n - ddof`` (one of the two may be given).
      mean: the mean along `axis` with ``keepdims=True``, if known.

    Examples:

      >>> x = jnp.array([1., 2., 3., 4.])
      >>> jnp.var(x)
      Array(1.25, dtype=float32)
      >>> jnp.var(x, correction=1)
      Array(1.6666667, dtype=float32)
    """
    refuse_out("var", out)
    if correction is not None:
        if ddof:
            raise ValueError(f"var: ddof and correction are the same; got {ddof} and {correction}")
        ddof = correction
    x = operand("var", a)
    aval = aval_of(x)
    check_variance_dtype("var", dtype)
    target = _float_target("var", dtype, aval.dtype)
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(target):
        raise ValueError(f"jnp.var of {aval.dtype} is computed in a complex dtype, got dtype={target}")
    result_dtype = dtypes.to_real_dtype(target) if dtype is None else target
    work = _accumulation(target)
    axes = normalize_axes(axis, len(aval.shape))
    x = lax.convert_to(x, work, False)
    center = _mean(x, axes, keepdims=True, where=where) if mean is None else operand("var", mean)
    centered = subtract(x, lax.convert_to(center, work, False))
    if dtypes.is_complex(work):
        squares = lax.add(lax.square(lax.real(centered)), lax.square(lax.imag(centered)))
    else:
        squares = lax.square(centered)
    real = dtypes.to_real_dtype(work)
    count = _count(x, axes, where, real, keepdims)
    weight = subtract(count, np.asarray(ddof).astype(real)[()] if isinstance(ddof, (int, float)) else ddof)
    total = sum(squares, axes, keepdims=keepdims, where=where)
    # With no more elements than degrees of freedom there is no variance.
    empty = less_equal(weight, ops.scalar_like(weight, 0))
    safe = _select(empty, ops.scalar_like(weight, np.nan), weight)
    return lax.convert_to(true_divide(total, safe), result_dtype, False)


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"), arrays=("where", "mean"))
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: Any = None,
) -> Array:
    """The standard deviation, the square root of `var`; arguments as there.

    Examples:

      >>> x = jnp.array([1., 2., 3., 4.])
      >>> jnp.std(x)
      Array(1.118034, dtype=float32)
      >>> jnp.std(x, ddof=1)
      Array(1.2909945, dtype=float32)
    """
    refuse_out("std", out)
    check_variance_dtype("std", dtype)
    return lax.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


@one_program(static=("axis", "out", "keepdims"))
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the difference of the largest and the smallest element.

    Args:
      a: array.
      axis: the axis or axes; None denotes all.
      out: must be None.
      keepdims: keep these axes, with length 1.

    Returns:
      An array without these axes, of the dtype of `a`.

    Raises:
      ValueError: there are no elements.

    Examples:

      >>> jnp.ptp(jnp.array([[1, 5], [7, 2]]), axis=1)
      Array([4, 5], dtype=int32)
    """
    refuse_out("ptp", out)
    x = operand("ptp", a)
    return lax.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


@one_program(static=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements along axes that are not zero, as the default integer type.

    Args:
      a: array.
      axis: None (all), one axis, or several.
      keepdims: keep the reduced axes with length 1.

    Examples:

      >>> x = jnp.array([[0, 1, 2], [0, 0, 3]])
      >>> jnp.count_nonzero(x)
      Array(3, dtype=int32)
      >>> jnp.count_nonzero(x, axis=1)
      Array([2, 1], dtype=int32)
    """
    mask = as_bool(operand("count_nonzero", a))
    shape = aval_of(mask).shape
    dtype = positions.result_dtype("count_nonzero", dims.size([shape[i] for i in normalize_axes(axis, len(shape))]))
    return sum(mask, axis, dtype=dtype, keepdims=keepdims)
