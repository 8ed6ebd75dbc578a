"""Sets of values: unique elements, union, intersection, differences, membership.

The number of unique values depends on the data. With `size`, results have that many elements (cut off, or
filled up) and the functions can be traced; without, they need concrete arrays.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.positions import result_dtype
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import aligned, array, arrays, axis_index, concrete_int, promoted
from bedrax.numpy.sorting import search

__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


def _count(mask: Array, name: str, size: Any) -> int:
    if size is not None:
        return dims.integer(size, "size")
    return concrete_int(jnp.sum(mask), f"How many elements jnp.{name} returns depends on the values; pass size.")


def _differs(x: Array, y: Array, equal_nan: bool) -> Array:
    out = x != y
    if equal_nan and dtypes.is_inexact(x.dtype):
        out = out & ~(jnp.isnan(x) & jnp.isnan(y))
    return out


class _Groups(NamedTuple):
    order: Array  # the positions that sort the rows
    rows: Array  # the sorted rows
    starts: Array  # whether a sorted row differs from the one before


def _groups(rows: Array, equal_nan: bool) -> _Groups:
    """Sort rows of shape [n, k], and find the starts of groups of equal ones."""
    n, k = rows.shape
    positions = lax.iota(result_dtype("unique", n), n)
    columns = [lax.stop_gradient(rows[:, j]) for j in range(k)]
    if not columns:
        starts = positions == 0
        return _Groups(positions, rows, starts)
    *columns, order = lax.sort((*columns, positions), 0, num_keys=k)
    differs = functools.reduce(lax.bitwise_or, (_differs(c[1:], c[:-1], equal_nan) for c in columns))
    starts = jnp.concatenate([jnp.ones((dims.min_dim(n, 1),), bool), differs])
    ordered = rows if dims.definitely_equal(n, 0) else jnp.take(rows, order, axis=0)
    return _Groups(order, ordered, starts)


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The different values of an array, sorted.

    Args:
      ar: array.
      return_index: also return the position of the first occurrence of each value.
      return_inverse: also return, for each element, the position of its value.
      return_counts: also return the number of occurrences of each value.
      axis: take slices along this axis as values; by default, elements.
      equal_nan: whether NaNs are one value.
      size: length of the results; values are cut off or filled up.
      fill_value: the filling; by default the first (least) value.
      sorted: results are sorted in either case.

    Returns:
      The values, or a tuple of the values and the requested arrays, in the order of the arguments. Positions of
      filling are those of the first value, its counts are 0.

    Raises:
      ConcretizationTypeError: `ar` is traced and there is no `size`.

    Examples:

      >>> x = jnp.array([3, 1, 3, 2])
      >>> jnp.unique(x)
      Array([1, 2, 3], dtype=int32)
      >>> jnp.unique(x, return_counts=True)
      (Array([1, 2, 3], dtype=int32), Array([1, 1, 2], dtype=int32))
      >>> jnp.unique(x, size=5, fill_value=0)
      Array([1, 2, 3, 0, 0], dtype=int32)
    """
    ar = array("unique", ar)
    shape = ar.shape
    if axis is None:
        moved, inverse_shape = jnp.reshape(ar, (-1,)), shape
    else:
        axis = axis_index(axis, ar.ndim)
        moved = jnp.moveaxis(ar, axis, 0)
        inverse_shape = (shape[axis],)
    n = moved.shape[0]
    if dims.is_constant_shape(moved.shape):
        width = int(np.prod(moved.shape[1:]))
    else:
        width = dims.size(moved.shape[1:])
    if dims.definitely_equal(n, 0) and size and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value must be specified")
    order, rows, starts = _groups(jnp.reshape(moved, (n, width)), equal_nan)
    count = _count(starts, "unique", size)
    # One position more than requested: groups end where the next one starts.
    bounds = jnp.nonzero(starts, size=count + 1, fill_value=n)[0]
    first, filled = bounds[:-1], bounds[:-1] >= n
    at = jnp.where(filled, 0, first)
    if dims.definitely_equal(n, 0):
        values = jnp.zeros((count, *moved.shape[1:]), ar.dtype)
    else:
        values = jnp.reshape(jnp.take(rows, at, axis=0), (count, *moved.shape[1:]))
    if fill_value is not None:
        where = jnp.reshape(filled, (count,) + (1,) * (values.ndim - 1))
        values = jnp.where(where, jnp.asarray(fill_value, ar.dtype), values)
    results = [values if axis is None else jnp.moveaxis(values, 0, axis)]
    if return_index:
        results.append(jnp.take(order, at, axis=0) if not dims.definitely_equal(n, 0) else at)
    if return_inverse:
        group = jnp.cumsum(starts, dtype=order.dtype) - 1
        results.append(jnp.reshape(jnp.zeros_like(group).at[order].set(group), inverse_shape))
    if return_counts:
        results.append(bounds[1:] - bounds[:-1])
    return results[0] if len(results) == 1 else tuple(results)


class UniqueAllResult(NamedTuple):
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """Values, first positions, inverse and counts of `unique`; each NaN counts as a separate value.

    Args:
      x: array, flattened.
      size, fill_value: as in `unique`.

    Returns:
      ``UniqueAllResult(values, indices, inverse_indices, counts)``; the inverse has the shape of `x`.

    Examples:

      >>> result = jnp.unique_all(jnp.array([3, 1, 3]))
      >>> result.values
      Array([1, 3], dtype=int32)
      >>> result.inverse_indices
      Array([1, 0, 1], dtype=int32)
    """
    out = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAllResult(*out)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Values and counts of `unique`; each NaN counts as a separate value.

    Args:
      x: array, flattened.
      size, fill_value: as in `unique`.

    Returns:
      ``UniqueCountsResult(values, counts)``.

    Examples:

      >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
      Array([1, 2], dtype=int32)
    """
    out = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCountsResult(*out)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Values and inverse of `unique`; each NaN counts as a separate value.

    Args:
      x: array, flattened.
      size, fill_value: as in `unique`.

    Returns:
      ``UniqueInverseResult(values, inverse_indices)``; the inverse has the shape of `x`.

    Examples:

      >>> x = jnp.array([3, 1, 3])
      >>> values, inverse = jnp.unique_inverse(x)
      >>> values[inverse]
      Array([3, 1, 3], dtype=int32)
    """
    out = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverseResult(*out)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Values of `unique`; each NaN counts as a separate value.

    Args:
      x: array, flattened.
      size, fill_value: as in `unique`.

    Examples:

      >>> jnp.unique_values(jnp.array([3, 1, 3]))
      Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The values that occur in either array, sorted.

    Args:
      ar1, ar2: arrays, flattened.
      size, fill_value: as in `unique`.

    Returns:
      An array of rank 1, of the promoted dtype.

    Raises:
      ConcretizationTypeError: an array is traced and there is no `size`.

    Examples:

      >>> jnp.union1d(jnp.array([1, 3]), jnp.array([2, 3]))
      Array([1, 2, 3], dtype=int32)
    """
    ar1, ar2 = promoted("union1d", ar1, ar2)
    return unique(jnp.concatenate([jnp.ravel(ar1), jnp.ravel(ar2)]), size=size, fill_value=fill_value)


def _select(mask: Array, name: str, size: Any, xs: list, fills: list) -> list:
    """The elements of each of `xs` where the mask is true, filled up to `size`."""
    count = _count(mask, name, size)
    n = mask.shape[0]
    at = jnp.nonzero(mask, size=count, fill_value=n)[0]
    out = []
    for x, fill in zip(xs, fills, strict=True):
        if dims.definitely_equal(n, 0):
            out.append(jnp.full((count,), fill, x.dtype))
        else:
            out.append(jnp.where(at < n, jnp.take(x, at, mode="clip"), jnp.asarray(fill, x.dtype)))
    return out


def _filling(like: Array, size: Any, fill: Any) -> Array:
    """The result of a set function without values: `size` elements that are `fill`, or none."""
    return jnp.full((0 if size is None else dims.integer(size, "size"),), 0 if fill is None else fill, like.dtype)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """The values that occur in both arrays, sorted.

    Args:
      ar1, ar2: arrays, flattened.
      assume_unique: no array has a value twice (saves sorting).
      return_indices: also return the positions of first occurrence in `ar1` and in `ar2`.
      size, fill_value: as in `unique`; the default filling is the first common value. Positions are filled with
        the size of the array.

    Examples:

      >>> jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([3, 1, 7]))
      Array([1, 3], dtype=int32)
    """
    ar1, ar2 = (jnp.ravel(x) for x in promoted("intersect1d", ar1, ar2))
    n1, n2 = ar1.shape[0], ar2.shape[0]
    if dims.definitely_equal(n1 + n2, 0):
        none = _filling(ar1, size, fill_value)
        at = jnp.zeros(none.shape, dtypes.default_int_dtype())
        return (none, at, at) if return_indices else none
    values = jnp.concatenate([ar1, ar2])
    source = lax.iota(result_dtype("intersect1d", n1 + n2), n1 + n2)
    # Sorted stably, equal values stand together, those of `ar1` first, in the order of their positions.
    keys, source = lax.sort((lax.stop_gradient(values), source), 0, num_keys=1)
    first = source < n1
    total = keys.shape[0]
    starts = jnp.concatenate([jnp.ones((dims.min_dim(total, 1),), bool), keys[1:] != keys[:-1]])
    group = jnp.cumsum(starts) - 1
    zeros = jnp.zeros((total,), group.dtype)
    # Per group: the least position in either array; a position beyond the array means that there is none.
    at1 = (zeros + n1).at[group].min(jnp.where(first, source, n1))
    at2 = (zeros + n2).at[group].min(jnp.where(first, n2, source - n1))
    value = jnp.zeros((total,), keys.dtype).at[group].set(keys)
    mask = (at1 < n1) & (at2 < n2)
    fill = fill_value
    if fill is None:
        fill = jnp.take(value, jnp.argmax(mask), mode="clip")
    out = _select(mask, "intersect1d", size, [value, at1, at2], [fill, n1, n2])
    return tuple(out) if return_indices else out[0]


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The values of `ar1` that do not occur in `ar2`, sorted.

    Args:
      ar1, ar2: arrays, flattened.
      assume_unique: no array has a value twice; then the order of `ar1` is kept.
      size: length of the result; None needs concrete arrays.
      fill_value: the filling, by default 0.

    Examples:

      >>> jnp.setdiff1d(jnp.array([1, 2, 3, 3]), jnp.array([2]))
      Array([1, 3], dtype=int32)
    """
    ar1, ar2 = arrays("setdiff1d", ar1, ar2)
    ar1 = jnp.ravel(ar1)
    fill = 0 if fill_value is None else fill_value
    if assume_unique:
        return _select(~isin(ar1, ar2), "setdiff1d", size, [ar1], [fill])[0]
    _, rows, starts = _groups(ar1[:, None], True)
    ordered = rows[:, 0]
    return _select(starts & ~isin(ordered, ar2), "setdiff1d", size, [ordered], [fill])[0]


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The values that occur in exactly one of two arrays, sorted.

    Args:
      ar1, ar2: arrays, flattened.
      assume_unique: no array has a value twice.
      size, fill_value: as in `unique`.

    Examples:

      >>> jnp.setxor1d(jnp.array([1, 2, 3]), jnp.array([3, 4]))
      Array([1, 2, 4], dtype=int32)
    """
    ar1, ar2 = (jnp.ravel(x) for x in promoted("setxor1d", ar1, ar2))
    values = jnp.concatenate([ar1, ar2])
    if dims.definitely_equal(values.shape[0], 0):
        return _filling(values, size, fill_value)
    order, rows, starts = _groups(values[:, None], True)
    ordered = rows[:, 0]
    second = order >= ar1.shape[0]
    if dtypes.is_inexact(values.dtype):  # a NaN is one value of its array, and no value of the other one
        starts = starts | (jnp.isnan(ordered) & second & ~jnp.concatenate([second[:1], second[:-1]]))
    group = jnp.cumsum(starts) - 1
    none = jnp.zeros(ordered.shape, bool)
    in1, in2 = (none.at[group].max(side) for side in (~second, second))
    value = jnp.zeros_like(ordered).at[group].set(ordered)
    mask = in1 ^ in2
    fill = fill_value
    if fill is None:
        fill = jnp.take(value, jnp.argmax(mask), mode="clip")
    return _select(mask, "setxor1d", size, [value], [fill])[0]


@one_program(static=("assume_unique", "invert", "method"))
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element occurs in `test_elements`.

    Args:
      element: array.
      test_elements: array, of any shape.
      assume_unique: has no effect.
      invert: whether it does not occur.
      method: ``"compare_all"``, ``"binary_search"``, ``"sort"``, or ``"auto"``, by the sizes.

    Returns:
      A boolean array of the shape of `element`.

    Raises:
      ValueError: an unknown method.

    Examples:

      >>> jnp.isin(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 3]))
      Array([[False,  True],
             [ True, False]], dtype=bool)
    """
    methods = ("compare_all", "binary_search", "sort", "auto")
    one_of("isin", "method", method, methods)
    x, tests = promoted("isin", element, test_elements)
    tests = jnp.ravel(tests)
    if method == "auto":
        known = dims.is_constant_shape((*x.shape, *tests.shape))
        method = "compare_all" if known and tests.size * x.size <= 1 << 14 else "binary_search"
    if method == "compare_all" or dims.definitely_equal(tests.shape[0], 0):
        found = jnp.any(x[..., None] == aligned(tests, x[..., None]), axis=-1)
    else:
        tests = lax.sort(tests)
        if method == "sort":
            at = jnp.searchsorted(tests, x, method="sort")
        else:
            at = search(tests, x, "left")
        found = jnp.take(tests, at, mode="clip") == x
    return ~found if invert else found
