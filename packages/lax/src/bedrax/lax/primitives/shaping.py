"""Shaping: primitives that rearrange, repeat, select or make elements without computing on them.

Every function here accepts arrays, tracers, NumPy arrays and Python scalars. Shapes may hold
symbolic dimensions. A call without effect returns its operand.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bedrax.core import dims, dtypes, positions
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.tables import print_rules, pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, DTypeLike, Shape
from bedrax.lax.primitives.placement import placed, placed_as, placed_result

pure_shapes.add(__name__)

broadcast_in_dim_p: Final = Primitive("broadcast_in_dim", "shaping")
reshape_p: Final = Primitive("reshape", "shaping")
transpose_p: Final = Primitive("transpose", "shaping")
squeeze_p: Final = Primitive("squeeze", "shaping")
rev_p: Final = Primitive("rev", "shaping")
slice_p: Final = Primitive("slice", "shaping")
pad_p: Final = Primitive("pad", "shaping")
concatenate_p: Final = Primitive("concatenate", "shaping")
stack_p: Final = Primitive("stack", "shaping")
unstack_p: Final = Primitive("unstack", "shaping", multiple_results=True)
split_p: Final = Primitive("split", "shaping", multiple_results=True)
tile_p: Final = Primitive("tile", "shaping")
iota_p: Final = Primitive("iota", "shaping")
empty_p: Final = Primitive("empty", "shaping")

# Jaxprs print params that are not evident from the types.
print_rules.add(
    broadcast_in_dim_p, lambda params: {k: v for k, v in params.items() if v and k == "broadcast_dimensions"}
)


def like(aval: ShapedArray, shape: tuple[Any, ...]) -> ShapedArray:
    """The type `aval` with another shape."""
    return ShapedArray(shape, aval.dtype, aval.weak_type, memory_space=aval.memory_space, vma=aval.vma)


def canonical_axis(axis: int, ndim: int, what: str = "array") -> int:
    """`axis`, where negative ones count from the end, as an int in ``[0, ndim)``."""
    axis = dims.integer(axis, "axis")
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for {what} of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def check_same_dtypes(name: str, *avals: ShapedArray, tip: bool = False) -> None:
    """Raise unless all dtypes are equal; only the fast path costs anything."""
    first = avals[0].dtype
    for aval in avals:
        if aval.dtype != first:
            names = ", ".join(a.dtype.name for a in avals)
            hint = f"; jnp.{name} converts them" if tip else ""
            raise TypeError(coded("BX-DTYPES", f"lax.{name} takes operands of one dtype, got {names}{hint}"))


def _join(avals: Sequence[ShapedArray], shape: tuple) -> ShapedArray:
    """The type of several operands of one dtype put together."""
    first = avals[0]
    vma = first.vma
    for aval in avals:
        if aval.vma is not vma:
            vma = vma | aval.vma
    return ShapedArray(shape, first.dtype, all(a.weak_type for a in avals), memory_space=first.memory_space, vma=vma)


# -- broadcasting -------------------------------------------------------------------------


@broadcast_in_dim_p.abstract
def _broadcast_in_dim_shape(operand, *, shape, broadcast_dimensions):
    ndim = len(operand.shape)
    if len(broadcast_dimensions) != ndim:
        raise TypeError(f"broadcast_in_dim: {broadcast_dimensions} for an array of rank {ndim}; one dimension per axis")
    last = -1
    for size, axis in zip(operand.shape, broadcast_dimensions):
        if not 0 <= axis < len(shape):
            raise TypeError(
                f"broadcast_in_dim: dimensions {broadcast_dimensions} are not all axes of the result, of shape {shape}"
            )
        if not (dims.same_dim(size, shape[axis]) or dims.same_dim(size, 1)):
            raise TypeError(
                coded(
                    "BX-BROADCAST-TO",
                    f"broadcast_in_dim: axes have length 1 or that of the result, got shape {operand.shape} for {shape} with"
                    f" dimensions {broadcast_dimensions}",
                )
            )
        if axis <= last:
            raise TypeError(f"broadcast_in_dim: dimensions are strictly increasing, got {broadcast_dimensions}")
        last = axis
    if any(dims.is_constant_dim(n) and n < 0 for n in shape):
        raise TypeError(coded("BX-NEGATIVE-SIZE", f"an array cannot be broadcast to sizes below 0, got shape {shape}"))
    return like(operand, shape)


def broadcast_in_dim(
    operand: ArrayLike, shape: Shape, broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Repeat an array along new axes and axes of size 1 (StableHLO ``broadcast_in_dim``).

    Args:
      operand: array of any dtype.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of `operand`, the axis of the result that it becomes;
        its size is 1 or that of the result.
      out_sharding: optional placement of the result.

    Returns:
      An array of `shape` and the operand's dtype.

    Raises:
      TypeError: the dimensions do not fit.

    Examples:

      >>> x = jnp.array([1, 2])
      >>> lax.broadcast_in_dim(x, shape=(2, 3), broadcast_dimensions=(0,))
      Array([[1, 1, 1],
             [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return placed_result(
            out_sharding, broadcast_in_dim, operand, shape=shape, broadcast_dimensions=broadcast_dimensions
        )
    shape = dims.canonical_shape(shape)
    broadcast_dimensions = tuple(map(operator.index, broadcast_dimensions))
    if len(broadcast_dimensions) > 1 and (ordered := tuple(sorted(broadcast_dimensions))) != broadcast_dimensions:
        order = sorted(range(len(ordered)), key=broadcast_dimensions.__getitem__)
        if len(order) == len(aval_of(operand).shape):
            operand, broadcast_dimensions = transpose(operand, order), ordered
    if (
        len(broadcast_dimensions) == len(shape)
        and isinstance(operand, Array)
        and operand.shape == shape
        and broadcast_dimensions == tuple(range(len(shape)))
    ):
        return operand
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=broadcast_dimensions)


def broadcast(operand: ArrayLike, sizes: Shape, *, out_sharding: Any = None) -> Array:
    """Repeat an array along new leading axes.

    Args:
      operand: array.
      sizes: the lengths of the new axes, in order.
      out_sharding: optional placement of the result.

    Returns:
      An array of shape ``(*sizes, *operand.shape)``.

    Examples:

      >>> lax.broadcast(jnp.array([1, 2]), (2,))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    sizes = dims.canonical_shape(sizes)
    shape = aval_of(operand).shape
    new = len(sizes)
    return broadcast_in_dim(operand, (*sizes, *shape), range(new, new + len(shape)), out_sharding=out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add leading axes of length 1 until the array has a given rank.

    Args:
      x: array.
      rank: the number of axes of the result, an int, not smaller than the rank of `x`.

    Returns:
      The array, with new axes before the others.

    Examples:

      >>> lax.broadcast_to_rank(jnp.ones((2, 3)), rank=4).shape
      (1, 1, 2, 3)
    """
    ndim = len(aval_of(x).shape)
    if ndim > rank:
        raise ValueError(f"broadcast_to_rank: an array of rank {ndim} cannot be broadcast to rank {rank}")
    return expand_dims(x, range(rank - ndim))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast an array by NumPy's rules to the shape of another one.

    Args:
      arr: array.
      like_arr: an array with the wanted shape. Its elements and its dtype are not used.

    Returns:
      An array of the dtype of `arr`.

    Raises:
      TypeError: an axis of `arr`, counted from the last, has neither length 1 nor the wanted one.

    Examples:

      >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    shape = aval_of(like_arr).shape
    own = aval_of(arr).shape
    if len(own) > len(shape):
        raise ValueError(f"an array of shape {own} cannot be broadcast to shape {shape}, which has fewer axes")
    dimensions = tuple(range(len(shape) - len(own), len(shape)))
    return placed_as(aval_of(like_arr), broadcast_in_dim, arr, shape=shape, broadcast_dimensions=dimensions)


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that arrays of the given shapes have after NumPy broadcasting.

    Raises:
      ValueError: two sizes on one axis differ and neither is 1.

    Examples:

      >>> lax.broadcast_shapes((3, 1), (1, 4))
      (3, 4)
    """
    if len(shapes) == 1:
        return dims.canonical_shape(shapes[0])
    rank = max(map(len, shapes), default=0)
    out: list[Any] = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            known = out[i]
            if known is size or dims.same_dim(known, size) or dims.same_dim(size, 1):
                continue
            if not dims.same_dim(known, 1):
                raise ValueError(
                    coded("BX-BROADCAST", f"Incompatible shapes for broadcasting: shapes={list(map(tuple, shapes))}")
                )
            out[i] = size
    return dims.canonical_shape(out)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1.

    Args:
      array: any array.
      dimensions: positions of the new axes in the result; negative ones count from its end.

    Examples:

      >>> lax.expand_dims(jnp.ones((2, 3)), (0, 3)).shape
      (1, 2, 3, 1)
    """
    own = aval_of(array).shape
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"expand_dims: dimensions are distinct, got {tuple(dimensions)}")
    rank = len(own) + len(dimensions)
    new = {canonical_axis(d, rank) for d in dimensions}
    if len(new) != len(dimensions):
        raise ValueError(f"expand_dims: dimensions are distinct, got {tuple(dimensions)}")
    shape = list(own)
    for d in sorted(new):
        shape.insert(d, 1)
    return broadcast_in_dim(array, shape, [d for d in range(rank) if d not in new])


# -- reshape, transpose, squeeze, rev -----------------------------------------------------


@reshape_p.abstract
def _reshape_shape(operand, *, new_sizes, dimensions):
    for size in new_sizes:
        if dims.is_constant_dim(size) and size < 0:
            raise TypeError(coded("BX-NEGATIVE-SIZE", f"reshape: lengths are not negative, got new_sizes {new_sizes}"))
    if not dims.same_dim(dims.size(operand.shape), dims.size(new_sizes)):
        raise TypeError(
            coded(
                "BX-RESHAPE",
                f"reshape: {operand.shape} has {dims.size(operand.shape)} elements, {new_sizes} {dims.size(new_sizes)}",
            )
        )
    if dimensions is not None and sorted(dimensions) != list(range(len(operand.shape))):
        raise TypeError(f"reshape: dimensions={dimensions} is not a permutation of the axes of shape {operand.shape}")
    return like(operand, new_sizes)


def reshape(
    operand: ArrayLike, new_sizes: Shape, dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Array:
    """The same elements, read in row-major order, in another shape.

    Args:
      operand: array of any dtype.
      new_sizes: the new shape, of the same number of elements; no -1.
      dimensions: optional order of the operand's axes in which to read it.
      out_sharding: optional placement of the result.

    Examples:

      >>> lax.reshape(jnp.arange(6), (2, 3))
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
      >>> lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0))
      Array([1, 3, 2, 4], dtype=int32)
    """
    if out_sharding is not None:
        return placed_result(out_sharding, reshape, operand, new_sizes=new_sizes, dimensions=dimensions)
    new_sizes = dims.canonical_shape(new_sizes)
    if dimensions is not None:
        dimensions = tuple(map(operator.index, dimensions))
        if dimensions == tuple(range(len(dimensions))) == tuple(range(len(aval_of(operand).shape))):
            dimensions = None
    if dimensions is None and isinstance(operand, Array) and operand.shape == new_sizes:
        return operand
    return reshape_p.bind(operand, new_sizes=new_sizes, dimensions=dimensions)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge neighbouring axes into one.

    Args:
      operand: array.
      start_dimension: the first axis to merge; negative ones count from the end.
      stop_dimension: the axis after the last one to merge. Default: the rank.

    Returns:
      The array with one axis in place of these: its length is the product of theirs.

    Examples:

      >>> lax.collapse(jnp.ones((2, 3, 4)), 0, 2).shape
      (6, 4)
    """
    shape = aval_of(operand).shape
    lo, hi, _ = _builtin_slice(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(f"collapse: axes {start_dimension} to {stop_dimension} of shape {shape} are not a range")
    return reshape(operand, (*shape[:lo], dims.size(shape[lo:hi]), *shape[hi:]))


@transpose_p.abstract
def _transpose_shape(operand, *, permutation):
    shape = operand.shape
    if sorted(permutation) != list(range(len(shape))):
        raise TypeError(
            coded(
                "BX-TRANSPOSE",
                f"transpose: {permutation} is not a permutation of the axes of shape {shape}; name each axis from 0 to"
                f" {len(shape) - 1} once",
            )
        )
    return like(operand, tuple([shape[i] for i in permutation]))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Reorder the axes of an array.

    Args:
      operand: array.
      permutation: the axes in their new order, each once: axis ``i`` of the result is axis ``permutation[i]`` of
        the operand.

    Returns:
      An array of the dtype of `operand`.

    Raises:
      TypeError: `permutation` does not name each axis once.

    Examples:

      >>> lax.transpose(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
      (4, 2, 3)
    """
    permutation = tuple(map(operator.index, permutation))
    if (
        permutation == tuple(range(len(permutation)))
        and isinstance(operand, Array)
        and len(permutation) == operand.ndim
    ):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


@squeeze_p.abstract
def _squeeze_shape(operand, *, dimensions):
    shape = operand.shape
    for d in dimensions:
        if not dims.same_dim(shape[d], 1):
            raise ValueError(
                coded("BX-SQUEEZE", f"squeeze drops axes of length 1, got dimensions {dimensions} of shape {shape}")
            )
    return like(operand, tuple([n for i, n in enumerate(shape) if i not in dimensions]))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove axes of length 1.

    Args:
      array: array.
      dimensions: the axes to remove; negative ones count from the end.

    Returns:
      The array without these axes.

    Raises:
      ValueError: one of the axes has another length.

    Examples:

      >>> lax.squeeze(jnp.ones((1, 3, 1)), (0,)).shape
      (3, 1)
    """
    ndim = len(aval_of(array).shape)
    dimensions = tuple(sorted(canonical_axis(d, ndim) for d in dimensions))
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"squeeze: dimensions are distinct, got {dimensions}")
    if not dimensions and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=dimensions)


@rev_p.abstract
def _rev_shape(operand, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev: dimensions are distinct, got {dimensions}")
    if dimensions and not 0 <= min(dimensions) <= max(dimensions) < len(operand.shape):
        raise TypeError(f"rev: dimensions {dimensions} are not all among the axes of shape {operand.shape}")
    return like(operand, operand.shape)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of the elements along some axes.

    Args:
      operand: array.
      dimensions: the axes, each once.

    Returns:
      An array of the type of `operand`.

    Examples:

      >>> lax.rev(jnp.array([[1, 2], [3, 4]]), (1,))
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    return rev_p.bind(operand, dimensions=tuple(map(operator.index, dimensions)))


# -- slices and padding -------------------------------------------------------------------

_builtin_slice = slice


@slice_p.abstract
def _slice_shape(operand, *, start_indices, limit_indices, strides=None):
    shape = operand.shape
    ndim = len(shape)
    for what, given in (("start_indices", start_indices), ("limit_indices", limit_indices), ("strides", strides)):
        if given is not None and len(given) != ndim:
            raise TypeError(f"slice: {what} has one entry per axis of shape {shape}, got {given}")
    out = []
    for i, (size, lo, hi) in enumerate(zip(shape, start_indices, limit_indices)):
        step = 1 if strides is None else strides[i]
        if not dims.at_least(step, 1):
            raise TypeError(f"slice: strides are positive, got {strides}")
        if not dims.at_least(lo, 0):
            raise TypeError(f"slice: start_indices are not negative, got {start_indices}")
        if not dims.at_least(size, hi):
            raise TypeError(
                coded("BX-SLICE", f"slice: limit_indices {limit_indices} are beyond the operand, of shape {shape}")
            )
        if not dims.at_least(hi, lo):
            raise TypeError(f"slice: limit_indices {limit_indices} lie before start_indices {start_indices}")
        out.append(hi - lo if step == 1 else (hi - lo + step - 1) // step)
    return like(operand, tuple(out))


def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Shape, strides: Sequence[int] | None = None
) -> Array:
    """The elements ``start, start + stride, ... < limit`` along every axis; indices are static.

    Args:
      operand: array of any dtype.
      start_indices, limit_indices: one int per axis, ``0 <= start <= limit <= size``.
      strides: one positive int per axis; default 1.

    Raises:
      TypeError: the indices do not fit the shape.

    Examples:

      >>> x = jnp.arange(12).reshape(3, 4)
      >>> lax.slice(x, (0, 1), (3, 4), strides=(2, 1))
      Array([[ 1,  2,  3],
             [ 9, 10, 11]], dtype=int32)
    """
    return slice_p.bind(
        operand,
        start_indices=dims.canonical_shape(start_indices),
        limit_indices=dims.canonical_shape(limit_indices),
        strides=None if strides is None else dims.canonical_shape(strides),
    )


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Take a part along one axis, as a slice of Python does.

    Args:
      operand: array.
      start_index: the first position, an int; None: the beginning. Negative ones count from the end.
      limit_index: the position after the last one; None: the end. Negative ones count from the end.
      stride: the distance of positions that are taken, 1 or more.
      axis: the axis.

    Returns:
      An array of the dtype of `operand`.

    Examples:

      >>> lax.slice_in_dim(jnp.arange(10), 2, 9, stride=3)
      Array([2, 5, 8], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    bounds = []
    for name, bound, default in (("start_index", start_index, 0), ("limit_index", limit_index, size)):
        if bound is None:
            bound = default
        elif dims.is_constant_dim(bound):
            bound = dims.integer(bound, name)
            bound = size + bound if bound < 0 else bound
        bounds.append(bound)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = bounds[0], bounds[1], stride
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Take one position along one axis. The position is known.

    Args:
      operand: array.
      index: an int; negative ones count from the end.
      axis: the axis.
      keepdims: keep the axis, with length 1.

    Returns:
      The part of the array at this position.

    Raises:
      IndexError: the axis has no such position.

    Examples:

      >>> lax.index_in_dim(jnp.array([[1, 2], [3, 4]]), 1, keepdims=False)
      Array([3, 4], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = canonical_axis(axis, len(shape))
    index, size = dims.canonical_dim(index), shape[axis]
    start = size + index if index < 0 else index
    if dims.is_constant_dim(size) and not 0 <= start < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    out = slice_in_dim(operand, start, start + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


@pad_p.abstract
def _pad_shape(operand, padding_value, *, padding_config):
    shape = operand.shape
    if operand.dtype != padding_value.dtype:
        raise TypeError(f"pad: operand and padding_value have one dtype, got {operand.dtype} and {padding_value.dtype}")
    if padding_value.shape != ():
        raise ValueError(f"pad: padding_value is a scalar, got shape {padding_value.shape}")
    if len(padding_config) != len(shape):
        raise ValueError(f"pad: padding_config {padding_config} for shape {shape}; one (low, high, interior) per axis")
    out = []
    for size, (low, high, interior) in zip(shape, padding_config):
        if interior < 0:
            raise ValueError(f"pad: interior padding is not negative, got {padding_config}")
        out.append(low + high + (size if interior == 0 else dims.dilate_dim(size, interior + 1)))
    for size in out:
        if dims.is_constant_dim(size) and size < 0:
            raise ValueError(f"pad: {padding_config} would make shape {shape} {tuple(out)}; sizes are not negative")
    return like(operand, tuple(out)).update(weak_type=operand.weak_type and padding_value.weak_type)


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Add elements before, after and between those of an array, along every axis.

    Args:
      operand: array of any dtype.
      padding_value: scalar of the same dtype.
      padding_config: for each axis ``(low, high, interior)``: the numbers of elements added before the first
        element, after the last, and between neighbours. Negative `low` and `high` remove
        elements (after the interior ones are added).

    Raises:
      TypeError: dtypes differ. ValueError: `padding_config` does not fit.

    Examples:

      >>> lax.pad(jnp.array([1, 2, 3]), 0, [(1, 2, 0)])
      Array([0, 1, 2, 3, 0, 0], dtype=int32)
      >>> lax.pad(jnp.array([1, 2, 3]), 0, [(0, 0, 1)])
      Array([1, 0, 2, 0, 3], dtype=int32)
      >>> lax.pad(jnp.array([1, 2, 3]), 0, [(-1, 0, 0)])
      Array([2, 3], dtype=int32)
    """
    config = tuple([tuple([x if type(x) is int else dims.canonical_dim(x) for x in entry]) for entry in padding_config])
    if not any(map(any, config)) and isinstance(operand, Array) and len(config) == operand.ndim:
        _pad_shape(operand.aval, aval_of(padding_value), padding_config=config)
        return operand
    return pad_p.bind(operand, padding_value, padding_config=config)


# -- joining and splitting ----------------------------------------------------------------


@concatenate_p.abstract
def _concatenate_shape(*operands, dimension):
    if not operands:
        raise TypeError("concatenate: at least one array is needed, got none")
    first = operands[0]
    shape = first.shape
    rank = len(shape)
    check_same_dtypes("concatenate", *operands, tip=True)
    shapes = [a.shape for a in operands]
    if any(len(s) != rank for s in shapes):
        raise TypeError(
            coded(
                "BX-CONCATENATE",
                f"concatenate: the arrays must have one rank, got shapes {', '.join(map(str, shapes))}",
            )
        )
    if not 0 <= dimension < rank:
        raise TypeError(f"concatenate: dimension {dimension} is not an axis of arrays of shape {shape}")
    total: Any = 0
    for s in shapes:
        if s is not shape and not all(i == dimension or dims.same_dim(a, b) for i, (a, b) in enumerate(zip(s, shape))):
            raise TypeError(
                coded(
                    "BX-CONCATENATE",
                    f"concatenate along axis {dimension}: the other axes must have equal lengths, got shapes {shapes}",
                )
            )
        total = total + s[dimension]
    return _join(operands, (*shape[:dimension], total, *shape[dimension + 1 :]))


def concatenate(operands: Sequence[ArrayLike] | Array, dimension: int) -> Array:
    """Join arrays end to end along an existing axis.

    Args:
      operands: arrays of one dtype with equal shapes except along `dimension`.
      dimension: the axis, ``0 <= dimension < rank``.

    Examples:

      >>> lax.concatenate([jnp.array([[1], [2]]), jnp.array([[3], [4]])], dimension=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    operands = tuple(operands)
    if not operands:
        raise ValueError("concatenate: at least one array is needed, got none")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=dims.integer(dimension, "dimension"))


@stack_p.abstract
def _stack_shape(*operands, axis):
    check_same_dtypes("stack", *operands)
    shape = operands[0].shape
    for a in operands:
        if len(a.shape) != len(shape):
            shapes = ", ".join(str(a.shape) for a in operands)
            raise ValueError(f"stack: the arrays have one shape, got {shapes}")
        if not dims.same_shape(a.shape, shape):
            raise ValueError(f"stack: the arrays have one shape, got {', '.join(str(a.shape) for a in operands)}")
    return _join(operands, (*shape[:axis], len(operands), *shape[axis:]))


def stack(operands: Sequence[ArrayLike] | Array, axis: int = 0) -> Array:
    """Join arrays along a new axis.

    Args:
      operands: arrays of one shape and one dtype.
      axis: the position of the new axis in the result.

    Returns:
      An array with one axis more. The new axis has the length ``len(operands)``.

    Raises:
      ValueError: the arrays have different shapes, or there is none.

    Examples:

      >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    operands = tuple(operands)
    if not operands:
        raise ValueError("stack: at least one array is needed, got none")
    return stack_p.bind(*operands, axis=canonical_axis(axis, len(aval_of(operands[0]).shape) + 1))


@unstack_p.abstract
def _unstack_shape(operand, *, axis):
    shape = operand.shape
    if not dims.is_constant_dim(shape[axis]):
        raise ValueError(f"unstack needs a known number of parts; axis {axis} of shape {shape} is symbolic")
    part = like(operand, shape[:axis] + shape[axis + 1 :])
    return [part] * shape[axis]


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Cut an array along one axis into single positions.

    Args:
      x: array.
      axis: the axis.

    Returns:
      A tuple of arrays without this axis, one for each position.

    Examples:

      >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
      (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    return tuple(unstack_p.bind(x, axis=canonical_axis(axis, len(aval_of(x).shape))))


@split_p.abstract
def _split_shape(operand, *, sizes, axis):
    shape = operand.shape
    total = sum(sizes)
    if not dims.same_dim(total, shape[axis]):
        raise ValueError(f"split: sizes {sizes} sum to {total}; axis {axis} of shape {shape} has length {shape[axis]}")
    if any(dims.is_constant_dim(n) and n < 0 for n in sizes):
        raise ValueError(f"split: sizes are not negative, got {sizes}")
    return [like(operand, (*shape[:axis], n, *shape[axis + 1 :])) for n in sizes]


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> Sequence[Array]:
    """Cut an array along one axis into consecutive parts.

    Args:
      operand: array.
      sizes: the lengths of the parts, ints. Their sum is the length of the axis.
      axis: the axis.

    Returns:
      A list of arrays.

    Examples:

      >>> lax.split(jnp.arange(5), [2, 3])
      [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    axis = canonical_axis(axis, len(aval_of(operand).shape))
    return split_p.bind(operand, sizes=dims.canonical_shape(sizes), axis=axis)


@tile_p.abstract
def _tile_shape(operand, *, reps):
    shape = operand.shape
    if len(reps) != len(shape):
        raise TypeError(f"tile: reps has one entry per axis of shape {shape}, got {reps}")
    if any(dims.is_constant_dim(n) and n < 0 for n in reps):
        raise TypeError(f"tile: reps are not negative, got {reps}")
    return like(operand, tuple([n * r for n, r in zip(shape, reps)]))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat an array along its axes.

    Args:
      operand: array.
      reps: the number of repetitions along each axis, one int per axis.

    Returns:
      An array whose axis ``i`` has the length ``operand.shape[i] * reps[i]``.

    Examples:

      >>> lax.tile(jnp.array([[1, 2]]), (2, 2))
      Array([[1, 2, 1, 2],
             [1, 2, 1, 2]], dtype=int32)
    """
    return tile_p.bind(operand, reps=dims.canonical_shape(reps))


# -- making arrays ------------------------------------------------------------------------


@iota_p.abstract
def _iota_shape(*, dtype, shape, dimension):
    if not (dtypes.issubdtype(dtype, np.number)):
        raise TypeError(f"iota counts in a dtype of numbers, got {dtype}")
    if any(dims.is_constant_dim(n) and n < 0 for n in shape):
        raise TypeError(coded("BX-NEGATIVE-SIZE", f"iota: lengths are not negative, got shape {shape}"))
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension={dimension} is not an axis of shape {shape}")
    return ShapedArray(shape, dtype)


_COUNTING = (np.dtype(np.int32), np.dtype(np.uint32))


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the numbers ``0, 1, ..., size - 1``.

    Args:
      dtype: the dtype of the result.
      size: the number of elements, an int.

    Returns:
      An array of rank 1.

    Examples:

      >>> lax.iota(jnp.int32, 4)
      Array([0, 1, 2, 3], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: Any = None) -> Array:
    """An array of `shape` with the index along the axis `dimension` as each element.

    Integers of 8 and 16 bits wrap around.

    Args:
      dtype: the dtype of the result.
      shape: sequence of ints.
      dimension: the axis, not negative.
      out_sharding: optional placement of the result.

    Raises:
      OverflowError: the axis is longer than an integer dtype of 32 bits counts. Without x64, int64 is int32.
      ValueError: `dimension` is not an axis.
      TypeError: `dtype` is not a dtype of numbers.

    Examples:

      >>> lax.broadcasted_iota(jnp.int32, (2, 3), dimension=1)
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    dtype, shape, dimension = (
        dtypes.canonicalize_dtype(dtype),
        dims.canonical_shape(shape),
        dims.integer(dimension, "dimension"),
    )
    if dtype in _COUNTING and -len(shape) <= dimension < len(shape):
        positions.check("iota", shape[dimension], dtype)
    return placed(iota_p.bind(dtype=dtype, shape=shape, dimension=dimension), out_sharding)


@empty_p.abstract
def _empty_shape(*, shape, dtype):
    return ShapedArray(shape, dtype)


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: Any = None) -> Array:
    """An array with elements of unspecified values.

    Args:
      shape: sequence of ints.
      dtype: the dtype of the result.
      out_sharding: optional placement of the result.

    Examples:

      >>> lax.empty((2, 3), jnp.float32).shape
      (2, 3)
    """
    made = empty_p.bind(shape=dims.canonical_shape(shape), dtype=dtypes.canonicalize_dtype(dtype))
    return placed(made, out_sharding)


def shape_as_value(shape: Shape) -> Any:
    """A shape as a vector of int32.

    Examples:

      >>> lax.shape_as_value((2, 3))
      array([2, 3], dtype=int32)
    """
    shape = dims.canonical_shape(shape)
    if not shape:
        return np.zeros(0, np.int32)
    if all(map(dims.is_constant_dim, shape)):
        return np.asarray(shape, np.int32)
    return concatenate([reshape(dims.dim_as_value(n), (1,)) for n in shape], 0)


__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_in_dim_p",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "concatenate",
    "concatenate_p",
    "empty",
    "expand_dims",
    "index_in_dim",
    "iota",
    "iota_p",
    "pad",
    "pad_p",
    "reshape",
    "reshape_p",
    "rev",
    "rev_p",
    "shape_as_value",
    "slice",
    "slice_in_dim",
    "slice_p",
    "split",
    "split_p",
    "squeeze",
    "squeeze_p",
    "stack",
    "stack_p",
    "tile",
    "tile_p",
    "transpose",
    "transpose_p",
    "unstack",
    "unstack_p",
]
