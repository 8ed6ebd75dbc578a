"""Slices that start at computed positions, read and written: the functions of two primitives of indexing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bedrax.core import dims, dtypes, positions
from bedrax.core.array import Array, in_host_memory
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, Shape
from bedrax.lax.primitives import conversions, elementwise, shaping
from bedrax.lax.primitives.indexing import dynamic_slice_p, dynamic_update_slice_p

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
]


def _start_indices(name: str, shape: tuple, starts, allow_negative) -> list:
    """The start indices of a dynamic slice as scalars of one dtype; negative ones count from the end."""
    if not isinstance(starts, (tuple, list)):
        aval = aval_of(starts)
        if aval.ndim != 1:
            raise ValueError(f"start_indices is a sequence of scalars or an array of rank 1, got shape {aval.shape}")
        if isinstance(starts, np.ndarray) or in_host_memory(starts):
            starts = list(np.asarray(starts))
        else:
            starts = [shaping.index_in_dim(starts, i, keepdims=False) for i in range(aval.shape[0])]
    if len(starts) != len(shape):
        raise ValueError(f"{name}: {len(starts)} start indices for rank {len(shape)}; one per axis is needed")
    if type(allow_negative) is bool:
        allow_negative = (allow_negative,) * len(shape)
    elif len(allow_negative) != len(shape):
        raise ValueError(f"allow_negative_indices is a bool, or one per axis of {shape}; got {len(allow_negative)}")
    # Most indices are Python integers, which need no arithmetic at run time.
    out, dtype, computed = [], None, False
    for x, n, wrap in zip(starts, shape, allow_negative, strict=True):
        kind = type(x)
        if kind is int:
            out.append(x + n if x < 0 and wrap else x)
            continue
        aval = aval_of(x)
        if aval.ndim:
            raise TypeError(f"{name}: start indices are scalars, got {', '.join(map(str, map(aval_of, starts)))}")
        weak = aval.weak_type
        if not dtypes.issubdtype(aval.dtype, np.integer) or not (weak or dtype is None or aval.dtype == dtype):
            got = ", ".join(str(aval_of(s).dtype) for s in starts)
            raise TypeError(f"{name}: start indices are integers of one dtype, got {got}")
        if not weak:
            dtype = aval.dtype
        if isinstance(x, (np.generic, np.ndarray)) or in_host_memory(x):
            x = int(x)
            out.append(x + n if x < 0 and wrap else x)
        else:
            computed = True
            out.append((x, wrap and dtypes.issubdtype(aval.dtype, np.signedinteger)))
    if dtype is None:
        dtype = dtypes.default_int_dtype()
    limit = dtypes.iinfo(dtype).max
    bounds = [n for n in shape if type(n) is int] + [abs(x) for x in out if type(x) is int]
    if bounds and (max(bounds) > limit or positions.are_wide(*shape)):  # the index type cannot hold this dimension
        dtype = np.dtype(np.int32) if max(bounds) <= np.iinfo(np.int32).max else np.dtype(np.int64)
    if not computed:
        make = dtype.type
        return [make(x) if type(x) is int else conversions.convert_element_type(x, dtype) for x in out]
    for i, (x, n) in enumerate(zip(out, shape, strict=True)):
        if type(x) is tuple:
            value, wrap = x
            value = conversions.convert_to(value, dtype, False)
            if wrap:
                size = dims.dim_as_value(n) if not dims.is_constant_dim(n) else n
                size = dtype.type(size) if type(size) is int else conversions.convert_element_type(size, dtype)
                wrapped = elementwise.add_p.bind(value, size)
                value = elementwise.select_n_p.bind(elementwise.lt_p.bind(value, dtype.type(0)), value, wrapped)
            out[i] = value
        else:
            out[i] = dtype.type(x) if type(x) is int else conversions.convert_element_type(dims.dim_as_value(x), dtype)
    return out


@positions.wide
@one_program(static=("slice_sizes", "allow_negative_indices"))
def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Shape,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The part of an array of given size that starts at a computed position.

    Where the slice would overrun the array, it is moved inside.

    Args:
      operand: the array.
      start_indices: an integer scalar for each dimension (or an array of them), which may be traced.
      slice_sizes: the static size in each dimension.
      allow_negative_indices: whether negative indices count from the end (for all dimensions, or one
        bool each); without it they are out of bounds.

    Returns:
      An array of shape `slice_sizes`.

    Raises:
      TypeError, ValueError: a size exceeds the array's, or numbers of indices or dtypes do not fit.

    >>> x = np.arange(12).reshape(3, 4)
    >>> dynamic_slice(x, (1, 2), (2, 3)).tolist()  # moved to column 1, where it fits
    [[5, 6, 7], [9, 10, 11]]
    """
    if type(slice_sizes) is not tuple or any(type(size) is not int for size in slice_sizes):
        slice_sizes = dims.canonical_shape(slice_sizes)
    starts = _start_indices("dynamic_slice", aval_of(operand).shape, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=slice_sizes)


@positions.wide
@one_program(static=("allow_negative_indices",))
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A copy of `operand` with `update` written at a computed position.

    Where the update would overrun the array, it is moved inside.

    Args:
      operand: the array to start from.
      update: an array of its dtype and rank, no larger.
      start_indices, allow_negative_indices: as in `dynamic_slice`.

    Raises:
      TypeError, ValueError: dtypes, ranks, or sizes do not fit.

    Examples:

      >>> lax.dynamic_update_slice(jnp.zeros(5, int), jnp.array([1, 2]), (2,))
      Array([0, 0, 1, 2, 0], dtype=int32)
    """
    starts = _start_indices("dynamic_update_slice", aval_of(operand).shape, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def _start_at(operand, axis: int, index) -> tuple[int, list]:
    """The axis, counted from 0, and the start indices of a slice along it."""
    rank = len(aval_of(operand).shape)
    axis = shaping.canonical_axis(axis, rank)
    return axis, [index if d == axis else 0 for d in range(rank)]


@positions.wide
@one_program(static=("slice_size", "axis", "allow_negative_indices"))
def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """Take a part of fixed length along one axis. Its position may be computed; other axes are taken whole.

    Args:
      operand: array.
      start_index: an integer scalar. It is clamped, so that the part lies within the array.
      slice_size: the length of the part, an int.
      axis: the axis.
      allow_negative_indices: negative positions count from the end; if False, they are clamped to 0.

    Returns:
      An array whose `axis` has the length `slice_size`.

    Examples:

      >>> lax.dynamic_slice_in_dim(jnp.arange(10), 3, slice_size=4)
      Array([3, 4, 5, 6], dtype=int32)
    """
    axis, starts = _start_at(operand, axis, start_index)
    shape = aval_of(operand).shape
    sizes = (*shape[:axis], slice_size, *shape[axis + 1 :])
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


@positions.wide
@one_program(static=("axis", "keepdims", "allow_negative_indices"))
def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """Take one position along one axis. The position may be computed.

    Args:
      operand: array.
      index: an integer scalar. A position beyond the axis is clamped to its last one.
      axis: the axis.
      keepdims: keep the axis, with length 1.
      allow_negative_indices: negative positions count from the end; if False, they are clamped to 0.

    Returns:
      The part of the array at this position.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> lax.dynamic_index_in_dim(x, 1, axis=0)
      Array([[3, 4]], dtype=int32)
      >>> lax.dynamic_index_in_dim(x, 1, axis=0, keepdims=False)
      Array([3, 4], dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else shaping.squeeze(out, (axis,))


@positions.wide
@one_program(static=("axis", "allow_negative_indices"))
def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Return an array with a part along one axis replaced. Its position may be computed.

    Args:
      operand: array. It is not changed.
      update: the new elements, of the rank and the dtype of `operand`.
      start_index: an integer scalar, where the part begins. It is clamped, so that the part lies within the array.
      axis: the axis. Along the others, the part begins at 0.
      allow_negative_indices: negative positions count from the end; if False, they are clamped to 0.

    Returns:
      An array of the type of `operand`.

    Examples:

      >>> lax.dynamic_update_slice_in_dim(jnp.zeros(5, int), jnp.array([1, 2]), 3, axis=0)
      Array([0, 0, 0, 1, 2], dtype=int32)
    """
    ranks = len(aval_of(operand).shape), len(aval_of(update).shape)
    if ranks[0] != ranks[1]:
        raise TypeError(f"dynamic_update_slice: update and operand have one rank, got {ranks[1]} and {ranks[0]}")
    _, starts = _start_at(operand, axis, start_index)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


@positions.wide
@one_program(static=("axis", "allow_negative_indices"))
def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Return an array with one position along one axis replaced. The position may be computed.

    Args:
      operand: array. It is not changed.
      update: the new elements: an array that has the axis with length 1, or does not have it.
      index: an integer scalar. A position beyond the axis is clamped to its last one.
      axis: the axis.
      allow_negative_indices: negative positions count from the end; if False, they are clamped to 0.

    Returns:
      An array of the type of `operand`.

    Examples:

      >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 2)), jnp.ones(2), 1, axis=0)
      Array([[0., 0.],
             [1., 1.]], dtype=float32)
    """
    axis, starts = _start_at(operand, axis, index)
    if len(aval_of(update).shape) != len(starts):
        update = shaping.expand_dims(update, (axis,))
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)
