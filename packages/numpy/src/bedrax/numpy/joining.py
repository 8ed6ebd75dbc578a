"""Joining and splitting arrays: concatenate, stack, split, block, append, insert, delete."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, errors, positions
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.typing import ArrayLike, Axis, DTypeLike
from bedrax.lax.primitives.cumulative import cumsum
from bedrax.lax.promotion import operand, promote_dtypes
from bedrax.numpy.arguments import array, axis_index, counting, refuse_out
from bedrax.numpy.index_plans import concrete_value
from bedrax.numpy.manipulation import _take_known, atleast_1d, atleast_2d, atleast_3d, broadcast_to, moveaxis, ravel
from bedrax.numpy.selection import choose_where
from bedrax.numpy.sorting import argsort, sort


def _parts(name: str, arrays: Any, dtype: Any = None) -> list:
    """The arrays to join, of one dtype."""
    if isinstance(arrays, (Array, np.ndarray)):
        if not arrays.ndim:
            raise TypeError(f"jnp.{name} requires a sequence of arrays, got an array of rank 0")
        arrays = [arrays[i] for i in range(arrays.shape[0])] if isinstance(arrays, np.ndarray) else lax.unstack(arrays)
    elif not isinstance(arrays, (list, tuple)):
        try:
            arrays = list(arrays)
        except TypeError:
            raise TypeError(f"jnp.{name} requires a sequence of arrays, got {type(arrays)}") from None
    if not arrays:
        raise ValueError(f"Need at least one array to {name}. The sequence is empty.")
    if dtype is not None:
        dtype = dtypes.explicit_dtype(dtype, name)
        return [lax.convert_element_type(operand(name, x, i), dtype) for i, x in enumerate(arrays)]
    return promote_dtypes(name, arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along an existing axis.

    Args:
      arrays: a sequence of arrays with shapes that agree but for `axis`, or an array (its parts along axis 0).
      axis: the axis, or None to flatten all of them.
      dtype: of the result; default: the promoted dtype of the arrays.

    Raises:
      ValueError: there is no array, or one has rank 0.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.concatenate([x, x[:1]])
      Array([[1, 2],
             [3, 4],
             [1, 2]], dtype=int32)
      >>> jnp.concatenate([x, x], axis=1)
      Array([[1, 2, 1, 2],
             [3, 4, 3, 4]], dtype=int32)
    """
    parts = _parts("concatenate", arrays, dtype)
    if axis is None:
        return lax.concatenate([ravel(x) for x in parts], 0)
    rank = len(aval_of(parts[0]).shape)
    if not rank:
        raise ValueError("Zero-dimensional arrays cannot be concatenated. Use jnp.stack, or axis=None.")
    axis = axis_index(axis, rank)
    return lax.asarray(parts[0]) if len(parts) == 1 else lax.concatenate(parts, axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis; the name of `concatenate` in the array API standard.

    Args:
      arrays: a sequence of arrays with shapes that agree but for `axis`, or an array (its parts along axis 0).
      axis: the axis, or None to flatten all of them.

    Returns:
      An array of the promoted dtype of the arrays.

    Raises:
      ValueError: there is no array, or one has rank 0.

    Examples:

      >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Join arrays of equal shape along a new axis.

    Args:
      arrays: a sequence of arrays, or an array (its parts along axis 0).
      axis: the position of the new axis in the result.
      out: must be None.
      dtype: of the result; default: the promoted dtype of the arrays.

    Examples:

      >>> x, y = jnp.array([1, 2]), jnp.array([3, 4])
      >>> jnp.stack([x, y])
      Array([[1, 2],
             [3, 4]], dtype=int32)
      >>> jnp.stack([x, y], axis=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    parts = _parts("stack", arrays, dtype)
    shape = aval_of(parts[0]).shape
    for x in parts[1:]:
        if not dims.definitely_equal_shape(aval_of(x).shape, shape):
            shapes = ", ".join(str(aval_of(p).shape) for p in parts)
            raise ValueError(coded("BX-STACK", f"All input arrays must have the same shape; jnp.stack got {shapes}."))
    axis = axis_index(axis, len(shape) + 1)
    if len(parts) == 1:
        return lax.asarray(lax.expand_dims(parts[0], (axis,)))
    return lax.stack(parts, axis)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, without that axis.

    Args:
      x: array of rank 1 at least.
      axis: the axis.

    Returns:
      A tuple of as many arrays as the axis has elements.

    Raises:
      ValueError: `x` has rank 0, or the axis is out of bounds.

    Examples:

      >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
      (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    x = array("unstack", x)
    if not x.ndim:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return lax.unstack(x, axis)


def _each(name: str, tup: Any, widen) -> list:
    if isinstance(tup, (Array, np.ndarray)):
        tup = list(tup) if isinstance(tup, np.ndarray) else lax.unstack(tup)
    elif not isinstance(tup, (list, tuple)):
        raise TypeError(f"jnp.{name} requires a sequence of arrays, got {type(tup)}")
    return [widen(x) for x in tup]


def vstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Join along axis 0; vectors are rows.

    Args:
      tup: a sequence of arrays with shapes that agree but for axis 0, or an array (its parts along axis 0).
      dtype: of the result; default: the promoted dtype of the arrays.

    Raises:
      TypeError: `tup` is not a sequence.
      ValueError: there is no array.

    Examples:

      >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    return concatenate(_each("vstack", tup, atleast_2d), 0, dtype)


def hstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Join along axis 1, vectors along axis 0.

    Args:
      tup: a sequence of arrays with shapes that agree but for this axis, or an array (its parts along axis 0).
      dtype: of the result; default: the promoted dtype of the arrays.

    Raises:
      TypeError: `tup` is not a sequence.
      ValueError: there is no array.

    Examples:

      >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    parts = _each("hstack", tup, atleast_1d)
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Join along axis 2, after `atleast_3d`.

    Args:
      tup: a sequence of arrays with shapes that agree but for axis 2, or an array (its parts along axis 0).
      dtype: of the result; default: the promoted dtype of the arrays.

    Raises:
      TypeError: `tup` is not a sequence.
      ValueError: there is no array.

    Examples:

      >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[[1, 3],
              [2, 4]]], dtype=int32)
    """
    return concatenate(_each("dstack", tup, atleast_3d), 2, dtype)


def column_stack(tup: Any) -> Array:
    """Join along axis 1; vectors are columns.

    Examples:

      >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """

    def column(x):
        x = array("column_stack", x)
        return lax.reshape(x, (x.size, 1)) if x.ndim < 2 else x

    return concatenate(_each("column_stack", tup, column), 1)


def block(arrays: Any) -> Array:
    """An array from nested lists of blocks: the innermost lists along the last axis, and so on.

    Raises:
      ValueError: lists are nested to different depths, or empty.

    Examples:

      >>> a, b = jnp.ones((2, 2)), jnp.zeros((2, 1))
      >>> jnp.block([[a, b], [b.T, 7]])
      Array([[1., 1., 0.],
             [1., 1., 0.],
             [0., 0., 7.]], dtype=float32)
    """
    rank = 0

    def depth_of(item, path) -> int:
        nonlocal rank
        if isinstance(item, tuple):
            raise ValueError(f"jnp.block does not allow tuples, got {item} at {path}; use lists")
        if isinstance(item, list):
            if not item:
                raise ValueError(f"jnp.block does not allow empty lists, got {item} at {path}")
            depths = {depth_of(x, f"{path}[{i}]") for i, x in enumerate(item)}
            if len(depths) > 1:
                raise ValueError(f"jnp.block: lists are nested to different depths at {path}")
            return depths.pop() + 1
        rank = max(rank, len(aval_of(operand("block", item)).shape))
        return 0

    depth = depth_of(arrays, "arrays")
    rank = max(rank, depth)

    def join(item, level: int):
        if not isinstance(item, list):
            x = array("block", item)
            return lax.broadcast_to_rank(x, rank)
        return concatenate([join(x, level + 1) for x in item], rank - depth + level)

    return join(arrays, 0)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join two arrays. Neither of them is changed.

    Args:
      arr, values: arrays. With `axis`, they have one rank, and equal lengths of all other axes.
      axis: the axis to join along; None: both are flattened first.

    Returns:
      An array of the common dtype.

    Examples:

      >>> x = jnp.array([[1, 2]])
      >>> jnp.append(x, jnp.array([3, 4]))
      Array([1, 2, 3, 4], dtype=int32)
      >>> jnp.append(x, jnp.array([[3, 4]]), axis=0)
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    return concatenate([operand("append", arr), operand("append", values, 1)], axis)


# ---- taking apart -------------------------------------------------------------------------------------------------


def _split(name: str, ary: Any, indices_or_sections: Any, axis: int, uneven: bool = False) -> list[Array]:
    x = array(name, ary)
    axis = axis_index(axis, x.ndim)
    size = x.shape[axis]
    sections = indices_or_sections
    if isinstance(sections, (Array, np.ndarray)):
        known = concrete_value(sections)
        if known is None:
            raise errors.ConcretizationTypeError(
                sections, f"in jnp.{name} argument 1; the points to split at must be static"
            )
        sections = known.tolist()
    if isinstance(sections, (float, np.floating)) and float(sections).is_integer():  # as in NumPy
        sections = int(sections)
    if isinstance(sections, (int, np.integer, np.bool_)) or dims.is_symbolic(sections):
        if type(sections) is not int and isinstance(sections, (np.integer, np.bool_)):
            sections = int(sections)
        if sections <= 0:
            raise ValueError(f"number sections must be larger than 0. got {sections}")
        part, rest = divmod(size, sections)
        if rest != 0 and not uneven:
            raise ValueError(
                coded(
                    "BX-SPLIT",
                    f"array split does not result in an equal division: rest is {rest} of {x.shape[axis]} elements"
                    f" along axis {axis}; jnp.array_split makes parts of unequal length",
                )
            )
        sizes = [part + 1] * rest + [part] * (sections - rest) if uneven and rest != 0 else [part] * sections
    else:
        try:
            points = [i if dims.is_symbolic(i) else operator.index(i) for i in sections]
        except errors.JAXTypeError:
            raise
        except TypeError:
            raise TypeError(
                f"jnp.{name} takes a number of parts or a sequence of points to split at, both integers, got"
                f" {indices_or_sections!r}"
            ) from None
        wrap = lambda i: (
            i if not isinstance(i, int) or not isinstance(size, int) else (min(max(i + size if i < 0 else i, 0), size))
        )
        bounds = [0, *map(wrap, points), size]
        starts, ends = bounds[:-1], bounds[1:]
        if any(isinstance(a, int) and isinstance(b, int) and a > b for a, b in zip(starts, ends, strict=True)):
            # Points out of order give empty parts, as slices do.
            return [lax.slice_in_dim(x, a, max(a, b), axis=axis) for a, b in zip(starts, ends, strict=True)]
        sizes = [b - a for a, b in zip(starts, ends, strict=True)]
    return list(lax.split(x, sizes, axis))


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array along an axis.

    Args:
      ary: array.
      indices_or_sections: the number of equal parts, or the points to split at.
      axis: the axis.

    Raises:
      ValueError: the parts would not be equal.

    Examples:

      >>> jnp.split(jnp.arange(6), 3)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32), Array([4, 5], dtype=int32)]
      >>> jnp.split(jnp.arange(6), [1, 4])
      [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32), Array([4, 5], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut an array along one axis into parts. The lengths of the parts may differ by one.

    Args:
      ary: array.
      indices_or_sections: the number of parts, or the positions to cut at.
      axis: the axis.

    Returns:
      A list of arrays; the first ones are longer by one.

    Examples:

      >>> jnp.array_split(jnp.arange(5), 3)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32), Array([4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 0.

    Args:
      ary: array of rank 1 at least.
      indices_or_sections: the number of equal parts, or the points to split at.

    Raises:
      ValueError: the parts would not be equal, or the rank is lower.

    Examples:

      >>> jnp.vsplit(jnp.arange(6).reshape(3, 2), [1])
      [Array([[0, 1]], dtype=int32), Array([[2, 3],
             [4, 5]], dtype=int32)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 1; of vectors along axis 0.

    Args:
      ary: array of rank 1 at least.
      indices_or_sections: the number of equal parts, or the points to split at.

    Raises:
      ValueError: the parts would not be equal, or the rank is lower.

    Examples:

      >>> jnp.hsplit(jnp.arange(6).reshape(2, 3), [1])
      [Array([[0],
             [3]], dtype=int32), Array([[1, 2],
             [4, 5]], dtype=int32)]
    """
    x = array("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 2.

    Args:
      ary: array of rank 3 at least.
      indices_or_sections: the number of equal parts, or the points to split at.

    Raises:
      ValueError: the parts would not be equal, or the rank is lower.

    Examples:

      >>> [part.shape for part in jnp.dsplit(jnp.ones((2, 3, 4)), 2)]
      [(2, 3, 2), (2, 3, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


# ---- insert and delete ------------------------------------------------------------------------------------------------


def _known_places(name: str, obj: Any, size: int) -> np.ndarray:
    if isinstance(obj, slice):
        return np.arange(*obj.indices(size))
    if isinstance(obj, (list, tuple)):
        raise TypeError(f"jnp.{name} requires an int, a slice or an array for obj, got {type(obj)}")
    known = concrete_value(lax.asarray(operand(name, obj, 1)))
    if known is None:
        raise errors.ConcretizationTypeError(obj, f"the indices of jnp.{name} decide a shape: pass known ones")
    if known.size and not dtypes.is_integer(known.dtype) and known.dtype != np.bool_:
        raise ValueError(f"jnp.{name}: obj has integers or booleans, got {known.dtype}")
    return known


@positions.wide
def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """Insert values before given positions along an axis.

    Args:
      arr: array.
      obj: an int, a slice or an array of ints, static or (if an int array of known length) traced. Negative ones count
        from the end; those that are out of bounds are clipped.
      values: the values to insert, broadcast to the positions.
      axis: the axis, or None to flatten.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.insert(x, 1, 9, axis=1)
      Array([[1, 9, 2],
             [3, 9, 4]], dtype=int32)
    """
    x = array("insert", arr)
    given = array("insert", values, 2)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim)
    size = x.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(size))
    places = array("insert", obj, 1) if not isinstance(obj, (list, tuple)) else None
    if places is None:
        raise TypeError(f"jnp.insert requires an int, a slice or an array for obj, got {type(obj)}")
    if places.ndim > 1:
        raise ValueError(f"jnp.insert: obj is a slice, a scalar or a vector, got shape {places.shape}")
    if not dtypes.is_integer(places.dtype):
        if places.size:
            raise ValueError(f"jnp.insert(): obj array must be integer type; got {places.dtype}")
        places = lax.convert_element_type(places, np.int32)
    x = moveaxis(x, axis, 0)
    if places.ndim == 0:  # one position: all of `values` is inserted there
        if given.ndim < x.ndim:  # as in NumPy, the first axis of `values` runs along the inserted places
            given = lax.broadcast_to_rank(given, x.ndim)
        count = given.shape[0]
    else:
        given = moveaxis(lax.broadcast_to_rank(given, x.ndim), axis, 0) if given.ndim and x.ndim > 1 else given
        count = places.shape[0]
        if count == 1 and given.ndim == x.ndim:
            count = given.shape[0]
    total = size + count
    index = positions.dtype_for(size)
    places = counting(places, size)
    places = choose_where(places < 0, places + size, places)
    length = lax.convert_element_type(dims.dim_as_value(size), places.dtype)
    places = lax.convert_element_type(lax.clamp(places.dtype.type(0), places, length), index)
    places = lax.broadcast_in_dim(lax.reshape(places, (places.size,)), (count,), (0,)) if places.size == 1 else places
    order = argsort(places)
    final = places[order] + lax.iota(places.dtype, count)  # each insertion moves the later ones
    target = lax.full((count,), 0, final.dtype).at[order].set(final)
    dtype = x.dtype
    new = broadcast_to(lax.convert_element_type(given, dtype), (count, *x.shape[1:]))
    is_old = lax.full((total,), True, np.dtype(bool)).at[target].set(False, mode="drop")
    last = lax.convert_element_type(dims.dim_as_value(dims.non_negative(size - 1)), index)
    old = lax.clamp(index.type(0), cumsum(lax.convert_element_type(is_old, index), 0) - 1, last)
    out = x[old] if not dims.definitely_equal(size, 0) else lax.full((total, *x.shape[1:]), 0, dtype)
    return moveaxis(out.at[target].set(new, mode="drop"), 0, axis)


@positions.wide
def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """Remove given positions along an axis.

    Args:
      arr: array.
      obj: an int, a slice, or an array of ints (or of bool), static; or of unique ints if so promised.
      axis: the axis, or None to flatten.
      assume_unique_indices: a promise that no index repeats; then `obj` may be traced.

    Examples:

      >>> jnp.delete(jnp.array([10, 20, 30, 40]), jnp.array([0, 2]))
      Array([20, 40], dtype=int32)
    """
    x = array("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim)
    size = x.shape[axis]
    if isinstance(obj, (list, tuple)):
        raise TypeError(f"jnp.delete requires an int, a slice or an array for obj, got {type(obj)}")
    if not isinstance(obj, slice):
        places = lax.asarray(operand("delete", obj, 1))
        if dims.is_symbolic(size) and dtypes.is_integer(places.dtype):
            places = _different(places)
            assume_unique_indices = True
        known = None if dims.is_symbolic(size) else concrete_value(places)
        if known is None and (places.ndim == 0 or assume_unique_indices):
            if not dtypes.is_integer(places.dtype):
                raise ValueError(
                    "np.delete(arr, obj): for boolean indices, obj must be static, got a traced mask; use jnp.where, or"
                    " integers with assume_unique_indices=True"
                )
            places = ravel(places)
            places = sort(choose_where(places < 0, places + size, places))
            count = places.shape[0]
            keep = lax.iota(positions.dtype_for(size), size - count)
            # The k-th position that stays is k plus the number of removed ones before it.
            shifted = places - lax.iota(places.dtype, count)
            before = lax.reduce_sum(
                lax.convert_element_type(lax.expand_dims(keep, (1,)) >= lax.expand_dims(shifted, (0,)), np.int32), (1,)
            )
            return x.at[(slice(None),) * axis + (keep + before,)].get(mode="promise_in_bounds")
    known = _known_places("delete", obj, size)
    if known.ndim == 0 and known.dtype != bool and -size <= known < size:
        cut = int(known) % size
        return concatenate(
            [lax.slice_in_dim(x, 0, cut, axis=axis), lax.slice_in_dim(x, cut + 1, size, axis=axis)], axis
        )
    keep = np.ones(size, bool)
    if known.dtype == bool:
        if known.shape != (size,):
            raise ValueError(f"jnp.delete: a boolean obj has shape {(size,)}, that of the axis; got {known.shape}")
        keep[known] = False
    else:
        if known.size and (known.max() >= size or known.min() < -size):
            if known.ndim == 0:
                raise IndexError(f"index {int(known)} is out of bounds for axis {axis} with size {size}")
            known = known[(known < size) & (known >= -size)]
        keep[known.astype(int)] = False
    return _take_known(x, np.flatnonzero(keep).astype(positions.dtype_for(size)), axis)


def _different(places: Array) -> Array:
    """Known places in an axis of unknown size, each once; traced places are returned unchanged."""
    known = concrete_value(places)
    if known is None or known.ndim == 0:
        return places
    found = np.unique(known)
    if found.size and found[0] < 0 <= found[-1]:
        raise ValueError(
            f"jnp.delete: whether some of obj={known} are the same depends on the size of the axis, which is not known; count"
            " all of them from the front, or from the end"
        )
    return lax.asarray(found)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """Remove zeros at the front ("f"), the back ("b") or both of an array; the values must be known.

    Args:
      filt: array.
      trim: which ends.
      axis: along which axes (all, one or several).

    Examples:

      >>> jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]))
      Array([1, 0, 2], dtype=int32)
    """
    x = array("trim_zeros", filt)
    known = concrete_value(x)
    if known is None:
        raise errors.ConcretizationTypeError(x, "the values of filt decide the shape of trim_zeros: pass known ones")
    axes = (
        range(x.ndim)
        if axis is None
        else [axis_index(i, x.ndim) for i in (axis if isinstance(axis, Sequence) else (axis,))]
    )
    index = [slice(None)] * x.ndim
    for i in axes:
        hits = np.flatnonzero((known != 0).any(axis=tuple(j for j in range(x.ndim) if j != i)))
        if not hits.size:
            index[i] = slice(0, 0)
            continue
        low = int(hits[0]) if "f" in trim.lower() else 0
        high = int(hits[-1]) + 1 if "b" in trim.lower() else x.shape[i]
        index[i] = slice(low, high)
    return x[tuple(index)]
