"""Sorting and searching in sorted arrays.

The order is that of `lax.sort`: numbers by value, NaN last, complex numbers by real part, then imaginary part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, positions
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.choices import one_of
from bedrax.lax.primitives.sorting import take_along
from bedrax.numpy.arguments import array, arrays, axis_index, promoted

__all__ = ["argpartition", "argsort", "lexsort", "partition", "searchsorted", "sort", "sort_complex", "top_k"]


def _refuse(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise TypeError(
            f"{name}: kind={kind!r} names an algorithm, and there is only one; pass stable=True or stable=False"
        )
    if order is not None:
        raise TypeError(f"{name}: order={order!r} names fields, and arrays have none")


@one_program(static=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements along an axis in ascending order.

    Args:
      a: array.
      axis: the axis; None sorts the flattened array.
      kind, order: not supported.
      stable: keep the order of equal elements.
      descending: the greatest first (then NaN comes first).

    Returns:
      An array of the same dtype.

    Examples:

      >>> x = jnp.array([[3, 1, 2], [9, 7, 8]])
      >>> jnp.sort(x)
      Array([[1, 2, 3],
             [7, 8, 9]], dtype=int32)
      >>> jnp.sort(x, axis=0, descending=True)
      Array([[9, 7, 8],
             [3, 1, 2]], dtype=int32)
    """
    _refuse("sort", kind, order)
    a = array("sort", a)
    if axis is None:
        a, axis = jnp.ravel(a), 0
    axis = axis_index(axis, a.ndim)
    out = lax.sort(a, axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


@one_program(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions that put the elements along an axis in ascending order.

    Args:
      a: array.
      axis: the axis; None sorts the flattened array.
      kind, order: not supported.
      stable: positions of equal elements ascend.
      descending: the greatest element first.
      dtype: integer dtype of the positions; by default int32, or the default integer type under x64.

    Examples:

      >>> x = jnp.array([30, 10, 20, 10])
      >>> jnp.argsort(x)
      Array([1, 3, 2, 0], dtype=int32)
      >>> jnp.argsort(x, descending=True)
      Array([0, 2, 1, 3], dtype=int32)
    """
    _refuse("argsort", kind, order)
    a = array("argsort", a)
    if axis is None:
        a, axis = jnp.ravel(a), 0
    axis = axis_index(axis, a.ndim)
    dtype = None if dtype is None else dtypes.explicit_dtype(dtype, "argsort")
    dtype = positions.result_dtype("argsort", a.shape[axis], dtype)
    where = lax.broadcasted_iota(dtype, a.shape, axis)
    flip = descending and stable
    if flip:
        a, where = lax.rev(a, (axis,)), lax.rev(where, (axis,))
    out = lax.sort_key_val(lax.stop_gradient(a), where, axis, is_stable=stable)[1]
    return lax.rev(out, (axis,)) if descending else out


@one_program(static=("axis", "batch_size"))
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16) -> Array:
    """The positions that sort by several keys. The last key is compared first.

    Args:
      keys: a sequence of arrays of one shape, or an array with the keys as rows.
      axis: the axis along which to sort.
      batch_size: the number of keys that one sort compares. If there are more keys, and all have one dtype, a loop sorts by
        a batch at a time and ends with the key that is compared first. Keys of several dtypes are compared in one sort.

    Raises:
      TypeError: there are no keys.
      ValueError: their shapes differ, or `batch_size` is not positive.

    Examples:

      >>> first, last = jnp.array([2, 1, 1]), jnp.array([5, 5, 4])
      >>> jnp.lexsort((first, last))
      Array([2, 1, 0], dtype=int32)
    """
    if batch_size < 1:
        raise ValueError(f"lexsort: batch_size is positive, got {batch_size}")
    keys = arrays("lexsort", *([keys[i] for i in range(len(keys))] if hasattr(keys, "ndim") else keys))
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in keys}) > 1:
        raise ValueError(f"all keys need to be the same shape, got {[k.shape for k in keys]}")
    if not keys[0].ndim:
        return lax.full((), 0, dtypes.default_int_dtype())
    axis = axis_index(axis, keys[0].ndim)
    where = lax.broadcasted_iota(positions.result_dtype("lexsort", keys[0].shape[axis]), keys[0].shape, axis)
    keys = [lax.stop_gradient(k) for k in keys]
    first = len(keys) % batch_size if len(keys) > batch_size and len({k.dtype for k in keys}) == 1 else len(keys)
    if first:
        where = lax.sort((*keys[first - 1 :: -1], where), axis, num_keys=first)[-1]
    if first == len(keys):
        return where
    rows = lax.stack(keys[first:], 0)
    rows = lax.reshape(rows, ((len(keys) - first) // batch_size, batch_size, *rows.shape[1:]))

    def refine(where, batch):
        sorted_by = [take_along(k, where, axis) for k in lax.unstack(lax.rev(batch, (0,)))]
        return lax.sort((*sorted_by, where), axis, num_keys=batch_size)[-1], None

    return lax.scan(refine, where, rows)[0]


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The `k` largest or smallest elements along an axis, and their positions.

    Args:
      a: array of real numbers or booleans.
      k: the number of elements; a constant, not negative, at most the size of the axis.
      axis: the axis.
      mode: ``"largest"`` or ``"smallest"``. The order is the total order of IEEE 754: a NaN is above infinity, a NaN
        with a sign below minus infinity.
      sorted: the first results are the largest (or smallest). False permits any order; the results are the same.

    Returns:
      ``(values, positions)``, of the shape of `a`, with length `k` along the axis; the positions are int32. Of
      equal elements the one with the lower position comes first.

    Raises:
      TypeError: `a` is not an array or scalar.
      ValueError: another `mode`; complex numbers; `k` is out of range.

    Examples:

      >>> jnp.top_k(jnp.array([3, 9, 4, 7]), 2)
      (Array([9, 7], dtype=int32), Array([1, 3], dtype=int32))
      >>> jnp.top_k(jnp.array([3, 9, 4, 7]), 2, mode="smallest")
      (Array([3, 4], dtype=int32), Array([0, 2], dtype=int32))
    """
    one_of("top_k", "mode", mode, ("largest", "smallest"))
    return _top_k(a, k=dims.canonical_dim(k), axis=dims.integer(axis, "axis"), mode=mode)


@one_program(static=("k", "axis", "mode"))
def _top_k(a: ArrayLike, k: int, axis: int, mode: str) -> tuple[Array, Array]:
    a = array("top_k", a)
    # The function that reverses the order without loss: for integers the complement, as the least has no negative.
    turn = (lambda x: x) if mode == "largest" else lax.neg if dtypes.is_inexact(a.dtype) else lax.bitwise_not
    values, where = lax.top_k(turn(a), k, axis=axis)
    return turn(values), where


def _check_kth(kth: Any, size: Any) -> None:
    kth = dims.integer(kth, "kth")
    if dims.is_constant_dim(size) and not -size <= kth < size:
        raise ValueError(f"kth={kth} is out of bounds for an axis of size {size}; it must be in {-size}..{size - 1}")


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """A rearrangement with the element `kth` of the sorted array at `kth`; no greater ones precede it.

    The order within the two parts is unspecified (in this implementation, it is ascending).

    Args:
      a: array.
      kth: the position, a known int; a negative one counts from the end.
      axis: the axis.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      ValueError: `kth` or the axis is out of bounds.

    Examples:

      >>> x = jnp.array([7, 1, 9, 3])
      >>> jnp.partition(x, 1)[:2]
      Array([1, 3], dtype=int32)
    """
    a = array("partition", a)
    axis = axis_index(axis, a.ndim)
    _check_kth(kth, a.shape[axis])
    return lax.sort(a, axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions that rearrange `a` as `partition` does.

    Args:
      a, kth, axis: as in `partition`.

    Returns:
      An integer array of the shape of `a`.

    Raises:
      ValueError: `kth` or the axis is out of bounds.

    Examples:

      >>> x = jnp.array([7, 1, 9, 3])
      >>> x[jnp.argpartition(x, 2)][2]
      Array(7, dtype=int32)
    """
    a = array("argpartition", a)
    axis = axis_index(axis, a.ndim)
    _check_kth(kth, a.shape[axis])
    return argsort(a, axis)


def sort_complex(a: ArrayLike) -> Array:
    """Sort along the last axis by the real part, then by the imaginary part.

    Args:
      a: array, real or complex.

    Returns:
      A complex array of the shape of `a`: float32 becomes complex64, float64 becomes complex128.

    Examples:

      >>> jnp.sort_complex(jnp.array([2j, 1 + 1j, 1 - 1j]))
      Array([0.+2.j, 1.-1.j, 1.+1.j], dtype=complex64)
    """
    a = array("sort_complex", a)
    return lax.convert_to(lax.sort(a, axis_index(-1, a.ndim)), dtypes.to_complex_dtype(a.dtype))


def _ranks(x: Array) -> tuple[Array, ...]:
    """Arrays of real numbers whose lexicographic order is that of `lax.sort`. Integers replace floats.

    The bits of a positive float ascend with it. Those of a negative one descend. Both zeros are equal, and every NaN is last.
    """
    if dtypes.is_complex(x.dtype):
        return *_ranks(lax.real(x)), *_ranks(lax.imag(x))
    if not dtypes.is_floating(x.dtype):
        return (x,)
    if dtypes.finfo(x.dtype).bits < 32:  # the narrow formats differ in their signs and NaN
        x = lax.convert_element_type(x, np.float32)
    whole = np.dtype(f"int{8 * x.dtype.itemsize}")
    largest = np.array(np.iinfo(whole).max)
    bits = lax.bitcast_convert_type(x, whole)
    ascending = jnp.where(bits < 0, bits ^ largest, bits)
    return (jnp.where(jnp.isnan(x), largest, jnp.where(x == 0, 0, ascending)),)


def _precedes(x: Sequence[Array], y: Sequence[Array]) -> Array:
    """Whether ranks x come before ranks y."""
    less = x[0] < y[0]
    return less if len(x) == 1 else less | ((x[0] == y[0]) & _precedes(x[1:], y[1:]))


@one_program(static=("side", "method"), arrays=("sorter",))
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """The positions at which values would be inserted into a sorted array, to keep it sorted.

    Args:
      a: array of rank 1, ascending (or made so by `sorter`).
      v: values.
      side: ``"left"``, before elements equal to the value, or ``"right"``, after them.
      sorter: positions that sort `a`.
      method: ``"scan"`` bisects in a loop; ``"scan_unrolled"`` bisects without one where the size of `a` is known, and
        in a loop where it is symbolic; ``"sort"`` sorts both arrays; ``"compare_all"`` compares each value with each
        element. They give the same result.

    Returns:
      An integer array of the shape of `v`.

    Raises:
      ValueError: an unknown `side` or `method`, or `a` is not of rank 1.

    Examples:

      >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 9]))
      Array([0, 1, 3], dtype=int32)
      >>> jnp.searchsorted(jnp.array([1, 3, 5]), 3, side="right")
      Array(2, dtype=int32)
    """
    one_of("searchsorted", "side", side, ("left", "right"))
    one_of("searchsorted", "method", method, _SEARCHES)
    if sorter is not None:
        a = jnp.take(array("searchsorted", a), sorter, axis=0)
    a, v = promoted("searchsorted", a, v)
    if a.ndim != 1:
        raise ValueError(f"a should be 1-dimensional, got shape {a.shape}")
    dtype = (
        np.dtype(np.int32) if not positions.are_wide(a.shape[0]) else positions.result_dtype("searchsorted", a.shape[0])
    )
    if dims.definitely_equal(a.shape[0], 0):
        return lax.full(v.shape, 0, dtype)
    a, v = lax.stop_gradient(a), lax.stop_gradient(v)
    # `goes_right(x, w)`: whether the place of a value with the ranks w is behind an element with the ranks x
    goes_right = _precedes if side == "left" else (lambda x, w: ~_precedes(w, x))
    return _SEARCHES[method](a, v, goes_right, dtype, side)


def _compare_all(a, v, goes_right, dtype, side):
    columns = [x.reshape(x.shape + (1,) * v.ndim) for x in _ranks(a)]
    return jnp.sum(goes_right(columns, [x[None] for x in _ranks(v)]), axis=0, dtype=dtype)


def _by_sorting(a, v, goes_right, dtype, side):
    # Sort all values, a's before or after equal ones of v; the place is the rank less the rank among v alone.
    flat = jnp.ravel(v)
    parts = [flat, a] if side == "left" else [a, flat]
    order = argsort(jnp.concatenate(parts))
    rank = jnp.zeros(order.shape, dtype).at[order].set(lax.broadcasted_iota(dtype, order.shape, 0))
    n = flat.shape[0]
    mine = rank[:n] if side == "left" else rank[a.shape[0] :]
    own = argsort(flat)
    among = jnp.zeros((n,), dtype).at[own].set(lax.broadcasted_iota(dtype, (n,), 0))
    return (mine - among).reshape(v.shape)


def _bisect(a, v, goes_right, dtype, side, unrolled=False):
    # The place grows by the powers of two, the largest first, if the element in front of the new place is left of the value.
    n = a.shape[0]
    elements, values = _ranks(a), _ranks(v)
    known = dims.is_constant_dim(n)
    size = lax.convert_element_type(n if known else dims.dim_as_value(n), dtype)
    steps = int(n).bit_length() if known else np.iinfo(dtype).bits - 1
    largest = np.array(1 << (steps - 1), dtype)

    def grow(i, place):
        new = place + lax.shift_right_logical(largest, lax.convert_element_type(i, dtype))
        before = [jnp.take(x, new - 1, axis=0, mode="clip") for x in elements]
        return jnp.where((new <= size) & goes_right(before, values), new, place)

    place = lax.full(v.shape, 0, dtype)
    # Unrolled steps beyond log2(n), as for a symbolic n that turns out small, can take LLVM hours to compile.
    if unrolled and known:
        for i in range(steps):
            place = grow(i, place)
        return place
    return lax.fori_loop(0, steps, grow, place)


def _bisect_unrolled(*args):
    return _bisect(*args, unrolled=True)


_SEARCHES = {"scan": _bisect, "scan_unrolled": _bisect_unrolled, "sort": _by_sorting, "compare_all": _compare_all}


def search(a: Array, v: Array, side: str) -> Array:
    """`searchsorted` by the method that suits the sizes: few comparisons are cheaper in one step than in a loop."""
    known = dims.is_constant_shape((*a.shape, *v.shape))
    small = known and a.size * max(v.size, 1) <= 1 << 14
    return searchsorted(a, v, side, method="compare_all" if small else "scan")
