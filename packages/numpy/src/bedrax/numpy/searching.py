"""Elements by position: `where`, `nonzero` and variants, `take`, `put`, `extract`, and conversions of indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, errors, positions
from bedrax.core.array import Array
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.public import public
from bedrax.core.typing import ArrayLike, DTypeLike, ShapeLike
from bedrax.lax.choices import one_of
from bedrax.lax.operators import add, floor_divide, multiply, remainder
from bedrax.lax.primitives.cumulative import cumsum
from bedrax.lax.primitives.indexing import GatherDimensionNumbers, GatherScatterMode
from bedrax.numpy.arguments import array, as_bool, axis_index, counting, refuse_out
from bedrax.numpy.index_plans import concrete_value
from bedrax.numpy.indexing import _index_dtype, _wrapped
from bedrax.numpy.manipulation import resize
from bedrax.numpy.selection import choose_where, clip

# ---- where elements are not zero ------------------------------------------------------------------------------


def _size(name: str, size: Any, mask: Any) -> Any:
    if size is not None:
        return dims.canonical_dim(size)
    known = concrete_value(mask)
    if known is None:
        raise errors.ConcretizationTypeError(mask, f"how many elements jnp.{name} finds decides a shape: pass size")
    return int(np.count_nonzero(known))


def _positions(mask: Any, size: Any) -> Any:
    """Positions of the first `size` true elements of a vector. Its length stands for each missing one."""
    dtype = positions.dtype_for(mask.shape[0])
    if dims.definitely_equal(size, 0) or dims.definitely_equal(mask.shape[0], 0):
        return lax.full((size,), mask.shape[0], dtype)
    # The index of the k-th true element is the number of elements with at most k true ones up to them.
    before = cumsum(lax.convert_element_type(mask, dtype), 0)
    return cumsum(lax.full((size,), 0, dtype).at[before].add(1, mode="drop"), 0)


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The positions of the elements that are not zero, in order: one array of integers per axis.

    Args:
      a: array of rank 1 at least.
      size: the number of positions to return, which allows tracing: the rest is cut off, or filled.
      fill_value: the value at positions that do not exist, a scalar or one per axis; default 0.

    Raises:
      ConcretizationTypeError: `a` is traced and `size` not given.

    Examples:

      >>> x = jnp.array([[0, 5], [6, 0]])
      >>> jnp.nonzero(x)
      (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
      >>> x[jnp.nonzero(x)]
      Array([5, 6], dtype=int32)
    """
    x = array("nonzero", a)
    if not x.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    mask = as_bool(x)
    for n in x.shape:
        index_dtype = positions.result_dtype("nonzero", n)
    counting = positions.dtype_for(dims.size(x.shape))
    with positions.scope(dims.size(x.shape)):
        return _nonzero(x, mask, size, fill_value, index_dtype, counting)


def _nonzero(x, mask, size, fill_value, index_dtype, counting):
    if size is None:
        known = concrete_value(mask)
        if known is not None:
            return tuple(lax.asarray(i.astype(index_dtype)) for i in np.nonzero(known))
    size = _size("nonzero", size, mask)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ValueError(f"fill_value of nonzero needs one value per axis ({x.ndim}), got {len(fills)}")
    flat = _positions(lax.reshape(mask, (dims.size(x.shape),)), size)
    total = dims.size(x.shape)
    count = lax.reduce_sum(lax.convert_element_type(mask, counting), tuple(range(x.ndim)))
    exists = lax.lt(lax.iota(counting, size), count)
    if dims.definitely_equal(total, 0):
        exists = lax.full((size,), False, np.dtype(bool))
    out = []
    stride = total
    for n, fill in zip(x.shape, fills, strict=True):
        if dims.definitely_equal(total, 0):
            place = lax.full((size,), 0, counting)
        else:
            stride = dims.divide_shapes((stride,), (n,)) if not isinstance(stride, int) else stride // n
            place = remainder(floor_divide(flat, dims.dim_as_value(stride)), dims.dim_as_value(n))
        value = 0 if fill is None else fill
        out.append(lax.convert_element_type(choose_where(exists, place, value), index_dtype))
    return tuple(out)


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array | tuple[Array, ...]: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """`x` where `condition` holds, else `y`. With `condition` alone: the positions where it holds, as `nonzero`.

    Args:
      condition: array of bool; numbers hold where they are not zero.
      x, y: arrays or scalars, broadcast with each other and with the condition.
      size, fill_value: as in `nonzero`; only without `x` and `y`.

    Examples:

      >>> x = jnp.array([1, -2, 3])
      >>> jnp.where(x > 0, x, 0)
      Array([1, 0, 3], dtype=int32)
      >>> jnp.where(x > 0)
      (Array([0, 2], dtype=int32),)
    """
    if x is None and y is None:
        return nonzero(array("where", condition), size=size, fill_value=fill_value)
    if x is None or y is None:
        missing = "x" if x is None else "y"
        raise TypeError(f"jnp.where takes a condition alone, or with both x and y; {missing} is missing")
    if size is not None or fill_value is not None:
        raise ValueError("jnp.where: size and fill_value go with a condition alone, not with x and y")
    return choose_where(condition, x, y)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The positions, in the flattened array, of the elements that are not zero.

    Args:
      a: array.
      size: the number of positions to return, which allows tracing: the rest is cut off, or filled.
      fill_value: the value at positions that do not exist; default 0.

    Returns:
      An integer array of rank 1.

    Raises:
      ConcretizationTypeError: `a` is traced and `size` not given.

    Examples:

      >>> jnp.flatnonzero(jnp.array([[0, 5], [6, 0]]))
      Array([1, 2], dtype=int32)
    """
    x = array("flatnonzero", a)
    return nonzero(lax.reshape(x, (dims.size(x.shape),)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The positions of the elements that are not zero, as rows.

    Args:
      a: array.
      size: the number of rows to return, which allows tracing: the rest is cut off, or filled.
      fill_value: the row of a position that does not exist, a scalar or one per axis; default 0.

    Returns:
      An integer array of shape ``(size, a.ndim)``.

    Raises:
      ConcretizationTypeError: `a` is traced and `size` not given.

    Examples:

      >>> x = jnp.array([[0, 5], [6, 0]])
      >>> jnp.argwhere(x)
      Array([[0, 1],
             [1, 0]], dtype=int32)
      >>> jnp.argwhere(x, size=3, fill_value=-1)
      Array([[ 0,  1],
             [ 1,  0],
             [-1, -1]], dtype=int32)
    """
    x = array("argwhere", a)
    if not x.ndim:
        found = nonzero(lax.reshape(x, (1,)), size=size)[0]
        return lax.full((found.shape[0], 0), 0, dtypes.default_int_dtype())
    fill = fill_value
    if isinstance(fill_value, (Array, np.ndarray, list)) and np.ndim(fill_value):
        fill = tuple(fill_value)
    return lax.stack(nonzero(x, size=size, fill_value=fill), 1)


@positions.wide
def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """The parts of an array along an axis for which a condition holds.

    Args:
      condition: vector of bool, not longer than the axis.
      a: array.
      axis: the axis, or None to flatten.
      size: the number of parts to return, which allows a traced `condition`.
      fill_value: for parts that do not exist.
      out: must be None.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4], [5, 6]])
      >>> jnp.compress(jnp.array([True, False, True]), x, axis=0)
      Array([[1, 2],
             [5, 6]], dtype=int32)
    """
    refuse_out("compress", out)
    mask, x = as_bool(array("compress", condition)), array("compress", a, 1)
    if mask.ndim != 1:
        raise ValueError(f"compress: condition must be a 1D array, got shape {mask.shape}")
    if axis is None:
        x, axis = lax.reshape(x, (dims.size(x.shape),)), 0
    axis = axis_index(axis, x.ndim)
    n = x.shape[axis]
    known = concrete_value(mask[n:]) if mask.shape[0] > n else None
    if known is not None and known.any():
        raise ValueError(
            f"compress: condition contains entries that are out of bounds: it has {mask.shape[0]} elements for an axis of"
            f" size {n}"
        )
    mask = mask[:n]
    places = flatnonzero(mask, size=size, fill_value=n)
    return x.at[(slice(None),) * axis + (places,)].get(mode="fill", fill_value=fill_value)


@positions.wide
def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: Any = 0) -> Array:
    """The elements, flattened, for which a condition holds.

    Args:
      condition: array, flattened; an element holds if it is not zero. It may be longer than `arr` by zeros.
      arr: array, flattened.
      size: the number of elements to return, which allows a traced `condition`.
      fill_value: for elements that do not exist.

    Returns:
      An array of rank 1, of the dtype of `arr`.

    Raises:
      ValueError: an element of `condition` beyond the end of `arr` holds.
      ConcretizationTypeError: `condition` is traced and `size` not given.

    Examples:

      >>> x = jnp.arange(6)
      >>> jnp.extract(x % 2 == 0, x)
      Array([0, 2, 4], dtype=int32)
    """
    mask, x = array("extract", condition), array("extract", arr, 1)
    flat = lambda v: lax.reshape(v, (dims.size(v.shape),))
    return compress(flat(mask), flat(x), size=size, fill_value=fill_value)


# ---- taking ----------------------------------------------------------------------------------------------------------


def _as_positions(name: str, i: Array) -> Array:
    """Positions as integers: booleans are 0 and 1, as in NumPy."""
    if i.dtype == np.bool_:
        return lax.convert_element_type(i, np.int32)
    if not dtypes.is_integer(i.dtype):
        raise TypeError(coded("BX-INDEX-DTYPE", f"{name} requires integer indices, got {i.dtype}"))
    return i


@positions.wide
@one_program(static=("axis", "out", "mode", "unique_indices", "indices_are_sorted", "fill_value"))
def take(
    a: ArrayLike,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The elements at given positions along an axis.

    Args:
      a: array.
      indices: integers of any shape, which takes the place of the axis in the result.
      axis: the axis, or None to flatten.
      out: must be None.
      mode: the result at positions out of bounds: ``"fill"`` (default) `fill_value`, ``"clip"`` the nearest element,
        ``"wrap"`` takes them modulo the size, ``"promise_in_bounds"`` promises that there are none.
      unique_indices, indices_are_sorted: promises that allow faster programs.
      fill_value: default: nan, or the least (signed), greatest (unsigned) integer, or True.

    Raises:
      NotImplementedError: `mode` is "raise".

    Examples:

      >>> x = jnp.array([10, 20, 30])
      >>> jnp.take(x, jnp.array([2, 0]))
      Array([30, 10], dtype=int32)
      >>> jnp.take(x.astype(float), jnp.array([0, 7]))
      Array([10., nan], dtype=float32)
      >>> jnp.take(x, jnp.array([0, 7]), mode="clip")
      Array([10, 30], dtype=int32)
    """
    refuse_out("take", out)
    x, i = array("take", a), array("take", indices, 1)
    if axis is None:
        x, axis = lax.reshape(x, (dims.size(x.shape),)), 0
    axis = axis_index(axis, x.ndim)
    if mode == "raise":
        raise NotImplementedError(
            "jnp.take: mode='raise' is not supported, as compiled programs cannot raise; use 'clip', 'wrap' or 'fill'"
        )
    i = _as_positions("take", i)
    wrap = True
    if mode == "wrap":
        n = x.shape[axis]
        i, mode = remainder(counting(i, n), dims.dim_as_value(n)), "promise_in_bounds"
    elif mode == "clip":
        wrap = False  # as in NumPy, clipping makes negative indices 0
    elif mode is None:
        mode = "fill"
    return x.at[(slice(None),) * axis + (i,)].get(
        mode=mode,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        wrap_negative_indices=wrap,
    )


def _taken_shape(shape: tuple, places: tuple, axis: int) -> tuple:
    """The shape of the result of `take_along_axis`."""
    around = lambda s: (*s[:axis], 1, *s[axis + 1 :])
    joined = lax.broadcast_shapes(around(shape), around(places))
    return (*joined[:axis], places[axis], *joined[axis + 1 :])


@positions.wide
@one_program(static=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(
    arr: ArrayLike,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """For each position of `indices`, the element of `arr` at the index there along an axis.

    Args:
      arr: array.
      indices: integers, of the rank of `arr`; the other axes are broadcast.
      axis: the axis, or None to flatten both.
      mode, fill_value: as in `take`.
      wrap_negative_indices: whether negative indices count from the end (default).

    Examples:

      >>> x = jnp.array([[3, 1], [5, 9]])
      >>> order = jnp.argsort(x, axis=1)
      >>> jnp.take_along_axis(x, order, axis=1)
      Array([[1, 3],
             [5, 9]], dtype=int32)
    """
    x, i = array("take_along_axis", arr), array("take_along_axis", indices, 1)
    if not dtypes.is_integer(i.dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {i.dtype}")
    if axis is None:
        if i.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {i.shape}")
        x, axis = lax.reshape(x, (dims.size(x.shape),)), 0
    if x.ndim != i.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {i.ndim} vs. {x.ndim}")
    axis = axis_index(axis, x.ndim)
    mode = GatherScatterMode.from_any("fill" if mode is None else mode)
    n = x.shape[axis]
    if wrap_negative_indices and not dtypes.is_unsigned_integer(i.dtype):
        i = _wrapped(i, n, _index_dtype(x.shape, {i.dtype}), True)
        i = lax.asarray(i)
    if any(dims.definitely_equal(n, 0) for n in (*x.shape, *i.shape)):
        # A gather takes one element at least, also of an operand that has none. Upstream's result is 0, too.
        return lax.full(_taken_shape(x.shape, i.shape, axis), 0, x.dtype)
    # Axes on which both have the same length are aligned; an axis of length 1 is broadcast.
    shape, batch, window, collapsed = [], [], [], []
    for d in range(x.ndim):
        if d == axis:
            shape.append(i.shape[d])
            continue
        if dims.definitely_equal(x.shape[d], i.shape[d]):
            batch.append(d)
        elif dims.definitely_equal(x.shape[d], 1):
            collapsed.append(d)
        elif dims.definitely_equal(i.shape[d], 1):
            window.append(d)
        else:
            raise ValueError(f"take_along_axis: shapes {x.shape} and {i.shape} do not broadcast but for axis {axis}")
    if collapsed:
        x = lax.squeeze(x, collapsed)
    position = {d: k for k, d in enumerate(d for d in range(i.ndim) if d not in collapsed)}
    vectors = lax.squeeze(i, window) if window else i
    place = {d: k for k, d in enumerate(d for d in range(i.ndim) if d not in window)}
    numbers = GatherDimensionNumbers(
        tuple(window),
        (position[axis],),
        (position[axis],),
        tuple(position[d] for d in batch),
        tuple(place[d] for d in batch),
    )
    sizes = tuple(x.shape[position[d]] if d in window else 1 for d in range(i.ndim) if d not in collapsed)
    return lax.gather(x, lax.expand_dims(vectors, (vectors.ndim,)), numbers, sizes, mode=mode, fill_value=fill_value)


# ---- putting -----------------------------------------------------------------------------------------------------------


def _not_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"jnp.{name}: arrays are immutable; pass inplace=False and use what is returned")


@positions.wide
def put(a: ArrayLike, ind: Any, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """The array with the elements at flat positions replaced.

    Args:
      a: array.
      ind: integers: positions in the flattened array.
      v: values, repeated as often as needed.
      mode: "clip", "wrap", or "drop" for positions out of bounds. By default, negative positions count from the end, and
        those that are still out of bounds are clipped.
      inplace: must be False: arrays are immutable.

    Examples:

      >>> jnp.put(jnp.zeros(4, int), jnp.array([0, 2]), jnp.array([5, 6]), inplace=False)
      Array([5, 0, 6, 0], dtype=int32)
    """
    _not_in_place("put", inplace)
    x, i, values = array("put", a), array("put", ind, 1), array("put", v, 2)
    flat = lambda u: lax.reshape(u, (dims.size(u.shape),))
    i, values = flat(i), flat(values)
    if not i.size or not values.size:
        return x
    i = counting(_as_positions("put", i), x.size)
    if mode is None:
        i = choose_where(i < 0, i + x.size, i)
    if mode is None or mode == "clip":
        i, scatter_mode = clip(i, 0, x.size - 1), "promise_in_bounds"
    elif mode == "wrap":
        i, scatter_mode = remainder(i, x.size), "promise_in_bounds"
    elif mode == "drop":
        scatter_mode = "drop"
    else:
        raise ValueError(f"mode should be one of 'wrap', 'clip' or 'drop'; got mode={mode!r}")
    values = lax.convert_element_type(resize(values, i.shape), x.dtype)
    return lax.reshape(flat(x).at[i].set(values, mode=scatter_mode), x.shape)


@positions.wide
def put_along_axis(
    arr: ArrayLike, indices: Any, values: ArrayLike, axis: int | None, inplace: bool = True, *, mode: str | None = None
) -> Array:
    """The array with elements along an axis replaced: the counterpart of `take_along_axis`.

    Args:
      arr: array.
      indices: integers of the rank of `arr`.
      values: broadcast to the shape of `indices`.
      axis: the axis, or None to flatten.
      inplace: must be False: arrays are immutable.
      mode: as for ``x.at[...]``.

    Examples:

      >>> x = jnp.array([[1, 9], [8, 2]])
      >>> jnp.put_along_axis(x, jnp.argmax(x, axis=1, keepdims=True), 0, axis=1, inplace=False)
      Array([[1, 0],
             [0, 2]], dtype=int32)
    """
    _not_in_place("put_along_axis", inplace)
    x, i, v = (array("put_along_axis", arr), array("put_along_axis", indices, 1), array("put_along_axis", values, 2))
    shape = x.shape
    if axis is None:
        x, axis = lax.reshape(x, (dims.size(shape),)), 0
    axis = axis_index(axis, x.ndim)
    if i.ndim != x.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {i.ndim} vs. {x.ndim}")
    index = tuple(
        i if d == axis else lax.broadcasted_iota(positions.dtype_for(n), [n if k == d else 1 for k in range(x.ndim)], d)
        for d, n in enumerate(x.shape)
    )
    return lax.reshape(x.at[index].set(v, mode=mode), shape)


@positions.wide
def place(arr: ArrayLike, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """The array with the elements where a mask holds replaced by the first values, repeated as needed.

    Args:
      arr: array.
      mask: array of bool of the same size.
      vals: values; flattened, not empty.
      inplace: must be False: arrays are immutable.

    Examples:

      >>> x = jnp.array([1, 2, 3, 4])
      >>> jnp.place(x, x > 2, jnp.array([30, 40]), inplace=False)
      Array([ 1,  2, 30, 40], dtype=int32)
    """
    _not_in_place("place", inplace)
    x, m, v = array("place", arr), array("place", mask, 1), array("place", vals, 2)
    if m.size != x.size:
        raise ValueError(f"place: arr and mask must be the same size, got shapes {x.shape} and {m.shape}")
    v = lax.reshape(v, (v.size,))
    if not v.size:
        raise ValueError("place: Cannot place values from an empty array; vals must have an element")
    if not x.size:
        return x
    m = lax.reshape(as_bool(m), (m.size,))
    # The k-th true position takes the k-th value, counted around.
    dtype = positions.dtype_for(m.size)
    rank = lax.sub(cumsum(lax.convert_element_type(m, dtype), 0), dtype.type(1))
    which = lax.rem(lax.max(rank, dtype.type(0)), dtype.type(v.size))
    new = lax.convert_element_type(v[which], x.dtype)
    return lax.reshape(lax.select(m, new, lax.reshape(x, (x.size,))), x.shape)


# ---- indices from indices --------------------------------------------------------------------------------------------------


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays for the block of all combinations of the given indices.

    Args:
      *args: vectors of integers, or of bool (their true positions count).

    Examples:

      >>> x = jnp.arange(9).reshape(3, 3)
      >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
      Array([[1, 2],
             [7, 8]], dtype=int32)
    """
    out = []
    for k, a in enumerate(args):
        x = array("ix_", a)
        if x.ndim != 1:
            raise ValueError(public(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {x.shape}"))
        if x.dtype == np.bool_:
            x = nonzero(x)[0]
        elif not x.size:
            x = lax.convert_element_type(x, np.int32)
        out.append(lax.reshape(x, (1,) * k + (x.shape[0],) + (1,) * (len(args) - k - 1)))
    return tuple(out)


def unravel_index(indices: Any, shape: ShapeLike) -> tuple[Array, ...]:
    """Flat positions in an array of a shape, as one array of indices per axis; those out of bounds are clipped.

    Args:
      indices: array of integers; negative ones count from the end.
      shape: an int or a sequence of ints.

    Returns:
      A tuple of integer arrays of the shape of `indices`, one per axis of `shape`.

    Raises:
      TypeError: `indices` are not integers.

    Examples:

      >>> jnp.unravel_index(jnp.array([2, 3]), (2, 3))
      (Array([0, 1], dtype=int32), Array([2, 0], dtype=int32))
    """
    i = array("unravel_index", indices)
    shape = dims.canonical_shape(shape)
    total = dims.size(shape)
    if not dtypes.is_integer(i.dtype):
        raise TypeError(f"unravel_index needs integers, got {i.dtype}")
    positions.check("unravel_index", total, np.promote_types(i.dtype, np.int32))
    i = counting(i, total)
    whole = dims.dim_as_value(total)
    i = clip(choose_where(i < 0, i + whole, i), 0, dims.dim_as_value(total) - 1)
    out = []
    for n in reversed(shape):
        out.append(remainder(i, dims.dim_as_value(n)))
        i = floor_divide(i, dims.dim_as_value(n))
    return tuple(reversed(out))


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The flat positions in an array of shape `dims` of indices given per axis.

    Args:
      multi_index: integer arrays, one per axis.
      dims: the shape.
      mode: "clip" or "wrap" indices out of bounds, or "ignore" that they are; "raise" needs concrete values.
      order: "C" (last axis fastest) or "F".
      dtype: of the result; default: that of the indices.

    Raises:
      ValueError: with "raise", an index is out of bounds.

    Examples:

      >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 0])), (2, 3))
      Array([2, 3], dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    one_of("ravel_multi_index", "order", order, ("C", "F"))
    lengths = [int(d) for d in dims]
    parts = []
    for x, n in zip(multi_index, lengths, strict=True):
        i = array("ravel_multi_index", x)
        if not dtypes.is_integer(i.dtype):
            raise TypeError(f"ravel_multi_index: only int indices permitted, got {i.dtype}")
        i = counting(i, math.prod(lengths))
        if mode == "raise":
            known = concrete_value(i)
            if known is None:
                raise errors.ConcretizationTypeError(
                    i,
                    "A traced index cannot be checked, as mode='raise' of ravel_multi_index does; use"
                    " mode='wrap' or mode='clip'.",
                )
            if known.size and (known.min() < 0 or known.max() >= n):
                raise ValueError(
                    f"ravel_multi_index: invalid entry in coordinates array: indices are from {known.min()} to {known.max()},"
                    f" and the size is {n}; mode='wrap' and mode='clip' accept them"
                )
        elif mode == "clip":
            i = clip(i, 0, n - 1)
        elif mode == "wrap":
            i = remainder(i, n)
        elif mode != "ignore":
            raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'")
        parts.append(i)
    positions.check(
        "ravel_multi_index", math.prod(lengths), dtype or np.result_type(np.int32, *[i.dtype for i in parts])
    )
    strides = [1] * len(lengths)
    walk = range(len(lengths) - 2, -1, -1) if order == "C" else range(1, len(lengths))
    for k in walk:
        strides[k] = strides[k + 1] * lengths[k + 1] if order == "C" else strides[k - 1] * lengths[k - 1]
    out: Any = 0
    for i, stride in zip(parts, strides, strict=True):
        out = add(out, multiply(i, stride))
    out = lax.asarray(out)
    return out if dtype is None else lax.convert_element_type(out, dtype)
