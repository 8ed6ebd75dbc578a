"""Changing shapes: reshape, axes, flips, broadcasting, repetition."""

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
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, Axis, ShapeLike
from bedrax.lax import promotion
from bedrax.lax.operators import remainder, subtract
from bedrax.lax.primitives.cumulative import cumsum
from bedrax.lax.promotion import operand
from bedrax.numpy.arguments import array, axes_tuple, axis_index, counting
from bedrax.numpy.creation import _broadcast_checked, place
from bedrax.numpy.index_plans import concrete_value


def reshape(
    a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The elements of an array in another shape.

    Args:
      a: array.
      shape: an int or a sequence of them; one may be -1, which is then computed.
      order: "C", last axis fastest, or "F", first axis fastest; of both arrays.
      copy: make a new array even if the shape is the same.
      out_sharding: optional placement of the result.

    Raises:
      TypeError: the number of elements would change.
      ValueError: -1 is given with an axis of size 0, so any size would do.

    Examples:

      >>> x = jnp.arange(6)
      >>> jnp.reshape(x, (2, 3))
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
      >>> jnp.reshape(x, (3, -1), order="F")
      Array([[0, 3],
             [1, 4],
             [2, 5]], dtype=int32)
    """
    x = operand("reshape", a)
    own = aval_of(x).shape
    new = _new_shape(own, dims.canonical_shape(shape))
    if order == "F":
        n = len(own)
        out = lax.reshape(lax.transpose(x, range(n - 1, -1, -1)), new[::-1], out_sharding=out_sharding)
        out = lax.transpose(out, range(len(new) - 1, -1, -1))
    elif order == "C":
        out = lax.reshape(x, new, out_sharding=out_sharding)
    elif order == "A":
        raise NotImplementedError(
            "reshape: order='A' depends on the layout in memory, which arrays do not have; use 'C' or 'F'"
        )
    else:
        raise ValueError(f"reshape: order is 'C' or 'F', got {order!r}")
    return lax.copy_p.bind(out) if copy and out is a else out


def _new_shape(own: tuple, shape: tuple) -> tuple:
    """`shape` with -1 replaced."""
    if -1 not in [d for d in shape if type(d) is int]:
        if not dims.is_constant_shape(shape) or not dims.is_constant_shape(own) or dims.size(own) == dims.size(shape):
            return shape
        raise TypeError(
            coded(
                "BX-RESHAPE",
                f"cannot reshape array of shape {own} (size {dims.size(own)}) into shape {shape} (size {dims.size(shape)})",
            )
        )
    where = [i for i, d in enumerate(shape) if type(d) is int and d == -1]
    if len(where) > 1:
        raise ValueError(f"can only specify one unknown axis size with a -1 value, got shape={shape}")
    (i,) = where
    rest = (*shape[:i], *shape[i + 1 :])
    if dims.is_constant_shape(own) and dims.is_constant_shape(rest) and dims.size(own) == dims.size(rest) == 0:
        raise ValueError(
            coded(
                "BX-RESHAPE",
                f"cannot reshape array of shape {own} into shape {shape}: -1 has no definite value, because another axis has size 0;"
                " pass its size",
            )
        )
    try:
        missing = dims.divide_shapes(own, rest)
    except dims.InconclusiveDimensionOperation:
        if dims.is_constant_shape(own) and dims.is_constant_shape(rest):
            raise TypeError(
                coded(
                    "BX-RESHAPE",
                    f"cannot reshape array of shape {own} (size {dims.size(own)}) into shape {shape}: the size is no"
                    f" multiple of {dims.size(rest)}",
                )
            ) from None
        total, divisor = dims.size(own), dims.size(rest)
        raise dims.InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {own} and {shape}.\nThe remainder mod({total}, - {divisor}) should"
            f" be 0. Details: Cannot divide '{total}' by '-{divisor}'"
        ) from None
    return (*shape[:i], missing, *shape[i + 1 :])


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """Return the elements of an array along one axis.

    Args:
      a: array.
      order: ``"C"``: the last axis changes fastest; ``"F"``: the first axis does.
      out_sharding: optional placement of the result.

    Returns:
      An array of rank 1.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.ravel(x)
      Array([1, 2, 3, 4], dtype=int32)
      >>> jnp.ravel(x, order="F")
      Array([1, 3, 2, 4], dtype=int32)
    """
    if order == "K":
        raise NotImplementedError(
            "Ravel not implemented for order='K'. Arrays have no layout in memory; use 'C' or 'F'."
        )
    x = operand("ravel", a)
    return reshape(x, (dims.size(aval_of(x).shape),), order, out_sharding=out_sharding)


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """Remove axes of length 1.

    Args:
      a: array.
      axis: None (all axes of length 1), one axis, or several.

    Raises:
      ValueError: an axis given has another length; or none is given, and the shape is symbolic.

    Examples:

      >>> x = jnp.ones((1, 3, 1))
      >>> jnp.squeeze(x).shape
      (3,)
      >>> jnp.squeeze(x, axis=0).shape
      (3, 1)
    """
    x = array("squeeze", a)
    if axis is None:
        if any(map(dims.is_symbolic, x.shape)):
            raise ValueError(
                f"jnp.squeeze: axis=None is not supported with symbolic shapes, got shape {x.shape}: the size of an axis"
                " decides whether it is removed; name the axes"
            )
        axes = [i for i, n in enumerate(x.shape) if dims.definitely_equal(n, 1)]
    else:
        axes = axes_tuple(axis, x.ndim)
    return lax.squeeze(x, axes)


def expand_dims(a: ArrayLike, axis: Axis) -> Array:
    """Insert axes of length 1.

    Args:
      a: array.
      axis: an int or a sequence of them: the positions of the new axes in the result.

    Examples:

      >>> x = jnp.array([1, 2])
      >>> jnp.expand_dims(x, 0)
      Array([[1, 2]], dtype=int32)
      >>> jnp.expand_dims(x, (0, 2)).shape
      (1, 2, 1)
    """
    if not isinstance(axis, Sequence):
        axis = (axis,)
    axis = [operator.index(d) if isinstance(d, Array) else d for d in axis]
    return lax.asarray(lax.expand_dims(operand("expand_dims", a), axis))


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Reorder axes.

    Args:
      a: array.
      axes: for each axis of the result, that of `a`; default: the reverse order.

    Examples:

      >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])
      >>> jnp.transpose(x)
      Array([[1, 4],
             [2, 5],
             [3, 6]], dtype=int32)
      >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 2, 0)).shape
      (3, 4, 2)
    """
    x = array("transpose", a)
    n = x.ndim
    if axes is None:
        return lax.transpose(x, range(n - 1, -1, -1))
    return lax.transpose(x, [axis_index(i, n) for i in axes])


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Reorder axes; the name of `transpose` in the array API standard.

    Args:
      a: array.
      axes: for each axis of the result, that of `a`.

    Raises:
      TypeError: an axis is missing or occurs twice.

    Examples:

      >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
      (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchange the last two axes.

    Examples:

      >>> jnp.matrix_transpose(jnp.arange(6).reshape(1, 2, 3))
      Array([[[0, 3],
              [1, 4],
              [2, 5]]], dtype=int32)
    """
    x = array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose needs a matrix, got shape {x.shape}")
    return lax.transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two axes of an array.

    Args:
      a: array.
      axis1, axis2: the axes; negative ones count from the end.

    Returns:
      An array of the dtype of `a`.

    Raises:
      ValueError: the array does not have one of the axes.

    Examples:

      >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
      (4, 3, 2)
    """
    x = array("swapaxes", a)
    order = list(range(x.ndim))
    i, j = axis_index(axis1, x.ndim), axis_index(axis2, x.ndim)
    order[i], order[j] = j, i
    return lax.transpose(x, order)


def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """Move axes to other positions; the others keep their order.

    Args:
      a: array.
      source, destination: an int or as many ints each.

    Examples:

      >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
      (3, 4, 2)
    """
    x = array("moveaxis", a)
    as_tuple = lambda v: tuple(v) if isinstance(v, (Sequence, np.ndarray)) else (v,)
    source, destination = as_tuple(source), as_tuple(destination)
    src = [axis_index(i, x.ndim) for i in source]
    dst = [axis_index(i, x.ndim) for i in destination]
    if len(src) != len(dst):
        raise ValueError(f"Inconsistent number of elements: {len(src)} vs {len(dst)}")
    if len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise ValueError(f"repeated axis in moveaxis: source={source}, destination={destination}")
    order = [i for i in range(x.ndim) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return lax.transpose(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move an axis back until it lies before the position `start`; `moveaxis` is easier to read.

    Args:
      a: array.
      axis: the axis to move.
      start: the position, from ``-a.ndim`` to ``a.ndim``.

    Raises:
      ValueError: the axis or the position is out of bounds.

    Examples:

      >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
      (4, 2, 3)
    """
    x = array("rollaxis", a)
    i = axis_index(axis, x.ndim)
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"start={start} must satisfy {-x.ndim}<=start<={x.ndim}")
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, i, start - 1 if start > i else start)


@one_program(static=("axis",))
def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """Reverse the order of the elements along axes.

    Args:
      m: array.
      axis: the axis or axes; None denotes all.

    Returns:
      An array of the type of `m`.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.flip(x)
      Array([[4, 3],
             [2, 1]], dtype=int32)
      >>> jnp.flip(x, axis=1)
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    x = array("flip", m)
    axes = axes_tuple(axis, x.ndim)
    return lax.rev(x, axes) if axes else x


def fliplr(m: ArrayLike) -> Array:
    """Reverse the order along axis 1.

    Examples:

      >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverse the order along axis 0.

    Examples:

      >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
      Array([[3, 4],
             [1, 2]], dtype=int32)
    """
    return flip(m, 0)


@one_program(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate an array by 90 degrees, in the plane of two axes.

    Args:
      m: array of rank 2 or more.
      k: the number of rotations, from the first axis towards the second; negative ones turn back.
      axes: the two axes.

    Returns:
      An array of the dtype of `m`.

    Examples:

      >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
      Array([[2, 4],
             [1, 3]], dtype=int32)
    """
    x = array("rot90", m)
    i, j = (axis_index(ax, x.ndim) for ax in axes)
    if i == j:
        raise ValueError(f"Axes must be different, got {tuple(axes)} for shape {x.shape}")
    k = dims.integer(k, "k argument to jnp.rot90") % 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, (i, j))
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return lax.transpose(flip(x, j), order) if k == 1 else flip(lax.transpose(x, order), j)


def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: Any = None) -> Array:
    """Broadcast an array to a shape by NumPy's rules: axes are added in front, and axes of length 1 are repeated.

    Args:
      array: array.
      shape: the shape of the result.
      out_sharding: optional placement of the result.

    Returns:
      An array of this shape, of the dtype of `array`.

    Raises:
      ValueError: the shape does not fit.

    Examples:

      >>> jnp.broadcast_to(jnp.array([1, 2, 3]), (2, 3))
      Array([[1, 2, 3],
             [1, 2, 3]], dtype=int32)
    """
    x = lax.asarray(operand("broadcast_to", array))
    shape = dims.canonical_shape(shape)
    if out_sharding is not None:
        return lax.broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)), out_sharding=out_sharding)
    return _broadcast_checked(x, shape)


def broadcast_arrays(*args: Any) -> list[Array]:
    """The arrays, broadcast against each other.

    Examples:

      >>> jnp.broadcast_arrays(jnp.array([1, 2]), jnp.array([[0], [5]]))
      [Array([[1, 2],
             [1, 2]], dtype=int32), Array([[0, 0],
             [5, 5]], dtype=int32)]
    """
    args = [array("broadcast_arrays", x) for x in args]
    try:
        return promotion.broadcast("broadcast_arrays", args, scalars=False)
    except TypeError:
        shapes = [x.shape for x in args]
        raise ValueError(coded("BX-BROADCAST", f"Incompatible shapes for broadcasting: shapes={shapes}")) from None


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape that arrays of these shapes have after broadcasting.

    Raises:
      ValueError: the shapes do not fit.

    Examples:

      >>> jnp.broadcast_shapes((3, 1), (4,), ())
      (3, 4)
    """
    return lax.broadcast_shapes(*[dims.canonical_shape(s) for s in shapes]) if shapes else ()


def _atleast(n: int, name: str, widen, arys):
    if len(arys) == 1 and isinstance(arys[0], (list, tuple)):
        raise TypeError(f"jnp.{name}: arrays are separate arguments, got one {type(arys[0])}; unpack it with *")
    out = [x if x.ndim >= n else widen(x) for x in (array(name, a) for a in arys)]
    return out[0] if len(out) == 1 else out


def atleast_1d(*arys: Any) -> Array | list[Array]:
    """Arrays of rank 1 at least: scalars get an axis.

    Examples:

      >>> jnp.atleast_1d(3)
      Array([3], dtype=int32, weak_type=True)
    """
    return _atleast(1, "atleast_1d", lambda x: lax.reshape(x, (1,)), arys)


def atleast_2d(*arys: Any) -> Array | list[Array]:
    """Arrays of rank 2 at least: axes are added in front.

    Examples:

      >>> jnp.atleast_2d(jnp.array([1, 2]))
      Array([[1, 2]], dtype=int32)
    """
    return _atleast(2, "atleast_2d", lambda x: lax.broadcast_to_rank(x, 2), arys)


def atleast_3d(*arys: Any) -> Array | list[Array]:
    """Return arrays with at least three axes.

    Args:
      arys: arrays or numbers.

    Returns:
      One array, or a list of arrays if several are given. A number gets the shape (1, 1, 1), an array of shape (n,) the
      shape (1, n, 1), one of shape (m, n) the shape (m, n, 1). Arrays of higher rank are unchanged.

    Examples:

      >>> jnp.atleast_3d(jnp.array([1, 2])).shape
      (1, 2, 1)
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _atleast(3, "atleast_3d", lambda x: lax.expand_dims(x, new[x.ndim]), arys)


def tile(A: ArrayLike, reps: Any) -> Array:
    """Repeat an array as a whole along its axes.

    Args:
      A: array.
      reps: the number of times, an int or one per axis. The shorter one of `reps` and ``A.shape`` is extended by leading
        ones.

    Raises:
      TypeError: a number is negative.

    Examples:

      >>> jnp.tile(jnp.array([[1, 2]]), (2, 2))
      Array([[1, 2, 1, 2],
             [1, 2, 1, 2]], dtype=int32)
    """
    x = array("tile", A)
    reps = dims.canonical_shape(reps)
    rank = max(x.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + tuple(reps)
    x = lax.broadcast_to_rank(x, rank)
    if all(type(r) is int and r == 1 for r in reps):
        return x
    return lax.tile(x, reps)


def repeat(
    a: ArrayLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Repeat each element along an axis.

    Args:
      a: array.
      repeats: an int, or one count per element.
      axis: the axis, or None to flatten.
      total_repeat_length: length of the result, needed if `repeats` is traced: the rest is filled with the last
        element, and excess elements are cut off.
      out_sharding: optional placement of the result.

    Raises:
      ConcretizationTypeError: `repeats` is traced, and the length is not given.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.repeat(x, 2)
      Array([1, 1, 2, 2, 3, 3, 4, 4], dtype=int32)
      >>> jnp.repeat(x, jnp.array([1, 2]), axis=0)
      Array([[1, 2],
             [3, 4],
             [3, 4]], dtype=int32)
    """
    x = array("repeat", a)
    if axis is None or not x.ndim:  # a scalar is a vector of one element, as in NumPy
        x, axis = lax.reshape(x, (dims.size(x.shape),)), axis or 0
    axis = axis_index(axis, x.ndim)
    size = x.shape[axis]
    if dims.is_symbolic(repeats) or (isinstance(repeats, int) and total_repeat_length is None):
        if type(repeats) is int and repeats < 0:
            raise ValueError(f"repeats may not be negative, got {repeats}")
        wide = lax.broadcast_in_dim(
            x, (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]), [i for i in range(x.ndim + 1) if i != axis + 1]
        )
        out = lax.reshape(wide, (*x.shape[:axis], size * repeats, *x.shape[axis + 1 :]))
        return place(out, None, out_sharding)
    counts = array("repeat", repeats) if not isinstance(repeats, (list, tuple)) else np.asarray(repeats)
    if counts.size == 0:
        counts = counts.astype(np.int32)  # NumPy makes floats of an empty list
    if not dtypes.is_integer(counts.dtype) and counts.dtype != np.bool_:
        raise TypeError(f"jnp.repeat: repeats are integers, got {counts.dtype}")
    if counts.ndim > 1 or (counts.ndim == 1 and counts.shape[0] not in (1, size)):
        raise ValueError(f"repeats must be a scalar or a vector of length {size}, got shape {counts.shape}")
    known = concrete_value(counts)
    if total_repeat_length is None:
        if known is None:
            raise errors.ConcretizationTypeError(
                counts,
                "The repeats decide the shape of the result of jnp.repeat. Pass known repeats, or their sum as"
                " total_repeat_length.",
            )
        places = np.repeat(np.arange(size, dtype=positions.dtype_for(size)), known.astype(int))
        return place(_take_known(x, places, axis), None, out_sharding)
    counts = (
        lax.broadcast_in_dim(lax.reshape(lax.asarray(counts), (1,)), (size,), (0,))
        if (counts.ndim == 0 or counts.shape[0] == 1)
        else lax.asarray(counts)
    )
    total = dims.canonical_dim(total_repeat_length)
    # Element i starts at the sum of the counts before it; the number of starts up to a place is the element's index.
    index = positions.dtype_for(size, total)
    with positions.scope(size, total):
        ends = cumsum(lax.convert_element_type(counts, index), 0)
        marks = lax.full((total,), 0, index).at[ends].add(1, mode="drop")
        last = lax.convert_element_type(dims.dim_as_value(dims.non_negative(size - 1)), index)
        which = lax.clamp(index.type(0), cumsum(marks, 0), last)
        out = x.at[(slice(None),) * axis + (which,)].get(mode="promise_in_bounds")
    return place(out, None, out_sharding)


def _take_known(x: Array, places: np.ndarray, axis: int) -> Array:
    if x.shape[axis] == 0 and places.size == 0:
        return x
    return x.at[(slice(None),) * axis + (places,)].get(mode="promise_in_bounds", wrap_negative_indices=False)


@positions.wide
def roll(a: ArrayLike, shift: Any, axis: Axis = None) -> Array:
    """Shift elements along axes; those shifted past the end are reinserted at the beginning.

    Args:
      a: array.
      shift: the distance: an int (which may be traced) or one per axis. Floats are cut to integers.
      axis: an int or several; None shifts the flattened array.

    Examples:

      >>> x = jnp.arange(6).reshape(2, 3)
      >>> jnp.roll(x, 1)
      Array([[5, 0, 1],
             [2, 3, 4]], dtype=int32)
      >>> jnp.roll(x, 1, axis=1)
      Array([[2, 0, 1],
             [5, 3, 4]], dtype=int32)
    """
    x = array("roll", a)
    if axis is None:
        return lax.reshape(roll(lax.reshape(x, (dims.size(x.shape),)), shift, 0), x.shape)
    axes = [axis_index(i, x.ndim) for i in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if isinstance(shift, (tuple, list)):
        shifts = list(shift)
    else:
        given = shift if isinstance(shift, int) else operand("roll", shift)
        rank = 0 if isinstance(given, int) else len(aval_of(given).shape)
        if rank > 1:
            raise ValueError(
                f"'shift' and 'axis' arguments to roll must be scalars or 1D arrays, got a shift of rank {rank}"
            )
        shifts = [given] if rank == 0 else [given[i] for i in range(aval_of(given).shape[0])]
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    elif len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"shift and axis of roll must have equal length, got {len(shifts)} and {len(axes)}")
    for by, i in zip(shifts, axes, strict=True):
        x = _roll_one(x, by, i)
    return x


def _roll_one(x: Array, by: Any, axis: int) -> Array:
    size = x.shape[axis]
    if isinstance(size, int) and size == 0:
        return x
    known = isinstance(by, (int, np.integer)) or (isinstance(by, np.ndarray) and by.ndim == 0)
    if known and isinstance(size, int):
        start = -int(by) % size
        if type(start) is int and start == 0:
            return x
        parts = [lax.slice_in_dim(x, start, size, axis=axis), lax.slice_in_dim(x, 0, start, axis=axis)]
        return lax.concatenate(parts, axis)
    by = lax.asarray(dims.dim_as_value(by) if dims.is_symbolic(by) else by)
    if dtypes.is_floating(by.dtype) or by.dtype == np.bool_:
        by = lax.convert_element_type(by, positions.dtype_for(size))
    if not dtypes.is_integer(by.dtype):
        raise TypeError(f"roll needs integers to shift by, got {by.dtype}")
    by = remainder(counting(by, size), dims.dim_as_value(size))  # first, as an unsigned number has no negative
    start = subtract(dims.dim_as_value(size), lax.convert_to(by, positions.dtype_for(size), False))
    return lax.dynamic_slice_in_dim(lax.concatenate([x, x], axis), start, size, axis, allow_negative_indices=False)


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements of `a`, repeated as a whole or cut off, in a new shape.

    Args:
      a: array, flattened.
      new_shape: an int or a sequence of ints.

    Returns:
      An array of this shape, of the dtype of `a`; zeros if `a` has no elements.

    Raises:
      ValueError: a length is negative.

    Examples:

      >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
      Array([[1, 2, 3, 1],
             [2, 3, 1, 2]], dtype=int32)
    """
    x = ravel(array("resize", a))
    shape = dims.canonical_shape(new_shape)
    if any(type(d) is int and d < 0 for d in shape):
        raise ValueError(f"all elements of `new_shape` must be non-negative, got {shape}")
    count, size = dims.size(shape), x.shape[0]
    if size == 0:
        return lax.full(shape, 0, x.dtype)
    if not dims.is_constant_dim(size):
        return lax.reshape(x[lax.iota(dtypes.default_int_dtype(), count) % size], shape)
    out = tile(x, -(-count // size))
    return lax.reshape(lax.slice_in_dim(out, 0, count), shape)
