"""Operations on BCOO arrays that move elements: slices, reshapes, sums over axes, convolutions."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.public import public
from bedrax.lax.primitives.indexing import GatherDimensionNumbers, GatherScatterMode
from bedrax.numpy.arguments import axis_index
from bedrax.sparse import elements
from bedrax.sparse.bcoo import BCOO, bcoo_sum_duplicates, bcoo_transpose, bcoo_update_layout, index_dtype_of
from bedrax.sparse.formats import counting_dtype, nfold_vmap

__all__ = [
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_conv_general_dilated",
    "bcoo_dynamic_slice",
    "bcoo_gather",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_squeeze",
]


def _edges(mat: BCOO) -> tuple[int, int]:
    return mat.n_batch, mat.n_batch + mat.n_sparse


def _keep(mat: BCOO, kept: Any) -> tuple:
    """The data and indices of `mat`, with padding in place of the elements for which the mask `kept` is false."""
    indices = jnp.where(kept[..., None], mat.indices, jnp.array(mat.sparse_shape, mat.indices.dtype))
    mask = kept.reshape(kept.shape + (1,) * mat.n_dense)
    return jnp.where(mask, mat.data, jnp.zeros((), mat.dtype)), indices


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over some axes; it stores the same elements, in a smaller shape.

    Args:
      mat: BCOO array.
      axes: the axes.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 4.]]))
      >>> sparse.bcoo_reduce_sum(m, axes=(0,)).todense()
      Array([3., 6.], dtype=float32)
    """
    axes = sorted({axis_index(a, mat.ndim) for a in axes})
    b, e = _edges(mat)
    batch = [a for a in axes if a < b]
    sparse = [a - b for a in axes if b <= a < e]
    dense = [a - e + b + 1 for a in axes if a >= e]
    data, indices = mat.data, mat.indices
    if sparse:  # padding must not become an element
        there = (indices >= 0) & (indices < jnp.array(mat.sparse_shape, indices.dtype))
        data, indices = _keep(mat, there.all(-1))
        indices = elements.columns(indices, [i for i in range(mat.n_sparse) if i not in sparse])
    if dense:
        data = data.sum(tuple(dense)).astype(mat.dtype)
    if batch:
        kept = [i for i in range(b) if i not in batch]

        def merged(x, tail):
            full = [mat.shape[i] if i in batch else x.shape[i] for i in range(b)]
            x = jnp.broadcast_to(x, (*full, *x.shape[b:])).transpose(*kept, *batch, *range(b, x.ndim))
            return x.reshape(
                *x.shape[: len(kept)], math.prod(mat.shape[i] for i in batch) * mat.nse, *x.shape[x.ndim - tail :]
            )

        data, indices = merged(data, data.ndim - b - 1), merged(indices, 1)
    shape = tuple(n for i, n in enumerate(mat.shape) if i not in axes)
    sums = bool(batch or sparse)
    return BCOO(
        (data, indices),
        shape=shape,
        indices_sorted=mat.indices_sorted and not sums,
        unique_indices=mat.unique_indices and not sums,
    )


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without some dimensions, all of size 1.

    Args:
      arr: BCOO array.
      dimensions: the dimensions.

    Raises:
      ValueError: a dimension has another size.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.]]))
      >>> sparse.bcoo_squeeze(m, dimensions=(0,)).shape
      (2,)
    """
    dimensions = sorted({axis_index(d, arr.ndim) for d in dimensions})
    if any(arr.shape[d] != 1 for d in dimensions):
        raise ValueError(f"squeeze drops dimensions of size 1, got {dimensions} of shape {arr.shape}")
    batch = tuple(d for d in dimensions if d < arr.n_batch)
    rest = [d for d in dimensions if d >= arr.n_batch]
    out = bcoo_reduce_sum(arr, axes=rest) if rest else arr
    shape = tuple(n for i, n in enumerate(arr.shape) if i not in dimensions)
    data, indices = (jnp.squeeze(x, batch) if batch else x for x in (out.data, out.indices))
    return BCOO((data, indices), shape=shape, indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """Broadcast a sparse array to a larger shape.

    Args:
      mat: a `BCOO` array.
      shape: the shape of the result.
      broadcast_dimensions: the position of each dimension of `mat` in it. New dimensions are batch dimensions before
        the sparse ones, dense ones after them, and sparse ones between them, which repeat the stored elements. New
        dimensions of size 1 at the end are also sparse if there are no dense ones.
      sharding: only None.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2.]))
      >>> sparse.bcoo_broadcast_in_dim(m, shape=(1, 2), broadcast_dimensions=(1,)).todense()
      Array([[0., 2.]], dtype=float32)
    """
    if sharding is not None:
        raise NotImplementedError(public("bcoo_broadcast_in_dim has no sharding: use jax.lax.with_sharding_constraint"))
    shape, places = tuple(shape), tuple(broadcast_dimensions)
    if (
        len(places) != mat.ndim
        or list(places) != sorted(set(places))
        or any(mat.shape[i] not in (1, shape[p]) for i, p in enumerate(places))
    ):
        raise ValueError(f"dimensions {places} of shape {shape} do not fit an array of shape {mat.shape}")
    b, e = _edges(mat)
    sparse = places[b:e]
    first = sparse[0] if sparse else places[b - 1] + 1 if b else places[0] if places else len(shape)
    first = max(first, (places[b - 1] + 1) if b else 0)
    last = sparse[-1] + 1 if sparse else first
    if sparse and not mat.n_dense and set(shape[last:]) <= {1}:
        last = len(shape)  # a new sparse dimension of size 1 costs less than a dense one
    n_batch, n_dense = first, len(shape) - last
    back = {p: i for i, p in enumerate(places)}
    data, indices = mat.data, mat.indices.astype(counting_dtype(mat.indices.dtype, math.prod(shape)))
    ones = [1] * (n_batch - b)
    data = data.reshape(*_spread(data.shape[:b], places[:b], n_batch), *data.shape[b:]) if ones else data
    indices = indices.reshape(*_spread(indices.shape[:b], places[:b], n_batch), *indices.shape[b:]) if ones else indices
    nse = mat.nse
    columns: list[Any] = []
    for p in range(n_batch, last):
        old = back.get(p)
        if old is not None and mat.shape[old] == shape[p]:
            columns.append(indices[..., old - b])
            continue
        # each element is repeated along a new dimension, or along one of size 1
        size = shape[p]
        there = None if old is None else (indices[..., old - b] >= 0) & (indices[..., old - b] < 1)
        repeat = functools.partial(jnp.repeat, repeats=size, axis=n_batch)
        data, indices = repeat(data), repeat(indices)
        new = jnp.tile(lax.iota(indices.dtype, size), nse)
        new = jnp.broadcast_to(new, indices.shape[:-1])
        if there is not None:
            new = jnp.where(repeat(there), new, jnp.array(size, new.dtype))
        columns = [repeat(c) for c in columns] + [new]
        nse *= size
    indices = jnp.stack(columns, -1) if columns else indices[..., :0]
    if n_dense or mat.n_dense:
        lead = [d for d in range(n_batch + 1)]
        dims = [*lead, *(places[i] - last + n_batch + 1 for i in range(e, mat.ndim))]
        data = lax.broadcast_in_dim(data, (*data.shape[: n_batch + 1], *shape[last:]), dims)
    return BCOO((data, indices), shape=shape)


def _spread(sizes: Sequence[int], places: Sequence[int], rank: int) -> list[int]:
    out = [1] * rank
    for n, p in zip(sizes, places):
        out[p] = n
    return out


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The concatenation of arrays of one layout along a dimension.

    Args:
      operands: BCOO arrays, one at least; their shapes agree but for `dimension`.
      dimension: the dimension.

    Raises:
      ValueError: there is no array, another kind of array, or the shapes differ.
      NotImplementedError: the layouts differ.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.]]))
      >>> sparse.bcoo_concatenate([m, m], dimension=0).todense()
      Array([[0., 2.],
             [0., 2.]], dtype=float32)
    """
    operands = list(operands)
    if not operands or not all(isinstance(op, BCOO) for op in operands):
        raise ValueError("bcoo_concatenate takes one BCOO array at least, and nothing else")
    first = operands[0]
    dimension = axis_index(dimension, first.ndim)
    if any((op.n_batch, op.n_sparse, op.n_dense) != (first.n_batch, first.n_sparse, first.n_dense) for op in operands):
        raise NotImplementedError(f"bcoo_concatenate of arrays of different layouts: {operands}")
    if any(
        op.shape[:dimension] + op.shape[dimension + 1 :] != first.shape[:dimension] + first.shape[dimension + 1 :]
        for op in operands
    ):
        raise ValueError(f"shapes that differ in other dimensions than {dimension}: {[op.shape for op in operands]}")
    shape = list(first.shape)
    shape[dimension] = sum(op.shape[dimension] for op in operands)
    b, e = _edges(first)
    dtype = counting_dtype(index_dtype_of(operands), math.prod(shape))
    joined = jnp.concatenate
    if dimension < b:
        nse = max(op.nse for op in operands)
        padded = [_padded(op, nse) for op in operands]
        data = joined(
            [jnp.broadcast_to(d, (*op.shape[:b], *d.shape[b:])) for op, (d, _) in zip(operands, padded)], dimension
        )
        indices = joined(
            [jnp.broadcast_to(i.astype(dtype), (*op.shape[:b], *i.shape[b:])) for op, (_, i) in zip(operands, padded)],
            dimension,
        )
        return BCOO((data, indices), shape=shape)
    offsets = itertools.accumulate([op.shape[dimension] for op in operands[:-1]], initial=0)
    datas, rows = [], []
    batch = first.shape[:b]
    for op, offset in zip(operands, offsets):
        data, indices = op.data, op.indices.astype(dtype)
        if dimension < e:  # padding gets indices out of the new bounds
            there = ((indices >= 0) & (indices < jnp.array(op.sparse_shape, dtype))).all(-1, keepdims=True)
            moved = indices.at[..., dimension - b].add(offset)
            indices = jnp.where(there, moved, jnp.array(shape[b:e], dtype))
        else:
            at = b + 1 + dimension - e
            widths = [(0, 0)] * data.ndim
            widths[at] = (offset, shape[dimension] - offset - op.shape[dimension])
            data = jnp.pad(data, widths)
        datas.append(jnp.broadcast_to(data, (*batch, *data.shape[b:])))
        rows.append(jnp.broadcast_to(indices, (*batch, *indices.shape[b:])))
    return BCOO((joined(datas, b), joined(rows, b)), shape=shape)


def _padded(mat: BCOO, nse: int) -> tuple:
    """The arrays with space for `nse` elements."""
    more, b = nse - mat.nse, mat.n_batch
    if not more:
        return mat.data, mat.indices
    data = jnp.pad(mat.data, [(0, 0)] * b + [(0, more)] + [(0, 0)] * mat.n_dense)
    absent = jnp.broadcast_to(
        jnp.array(mat.sparse_shape, mat.indices.dtype), (*mat.indices.shape[:b], more, mat.n_sparse)
    )
    return data, jnp.concatenate([mat.indices, absent], b)


def _window(mat: BCOO, starts: Sequence[Any], sizes: Sequence[int], strides: Sequence[int]) -> BCOO:
    """Windows of all dimensions, with starts that may be traced; `sizes` are those before the strides."""
    b, e = _edges(mat)
    out = tuple(-(-n // s) for n, s in zip(sizes, strides))
    data, indices = mat.data, mat.indices

    def cut(x, axis, dim):
        if x.shape[axis] == 1 != mat.shape[dim]:
            return x if sizes[dim] else lax.slice_in_dim(x, 0, 0, axis=axis)
        x = lax.dynamic_slice_in_dim(x, starts[dim], sizes[dim], axis)
        return lax.slice_in_dim(x, 0, sizes[dim], strides[dim], axis) if strides[dim] != 1 else x

    for d in range(b):
        data, indices = cut(data, d, d), cut(indices, d, d)
    for d in range(e, mat.ndim):
        data = cut(data, d - e + b + 1, d)
    if mat.n_sparse:
        dtype = indices.dtype
        start = jnp.stack([jnp.asarray(x).astype(dtype) for x in starts[b:e]])
        step, size = (jnp.array(x[b:e], dtype) for x in (strides, sizes))
        moved = indices - start
        kept = ((moved >= 0) & (moved < size) & (moved % step == 0)).all(-1)
        absent = jnp.array(out[b:e], dtype)
        indices = jnp.where(kept[..., None], moved // step, absent)
        data = jnp.where(kept.reshape(kept.shape + (1,) * mat.n_dense), data, jnp.zeros((), mat.dtype))
    new = BCOO((data, indices), shape=out, unique_indices=mat.unique_indices)
    room = math.prod(out[b:e])
    return bcoo_sum_duplicates(new, nse=room) if room < mat.nse else new


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """The array between known bounds, like `jax.lax.slice`.

    Args:
      mat: BCOO array.
      start_indices, limit_indices: for each dimension, the first position and the one after the last.
      strides: for each dimension, the distance of two positions. Default: 1.

    Raises:
      ValueError: the bounds do not fit the shape.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 0., 4.]))
      >>> sparse.bcoo_slice(m, start_indices=(1,), limit_indices=(4,)).todense()
      Array([2., 0., 4.], dtype=float32)
    """
    starts, limits = ([operator.index(i) for i in x] for x in (start_indices, limit_indices))
    strides = [1] * mat.ndim if strides is None else [operator.index(s) for s in strides]
    if not len(starts) == len(limits) == len(strides) == mat.ndim or any(
        not 0 <= a <= z <= n or s < 1 for a, z, n, s in zip(starts, limits, mat.shape, strides)
    ):
        raise ValueError(f"no slice of shape {mat.shape}: {starts=}, {limits=}, {strides=}")
    return _window(mat, starts, [z - a for a, z in zip(starts, limits)], strides)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A window of known size at computed positions, clamped like that of `jax.lax.dynamic_slice`.

    Args:
      mat: BCOO array.
      start_indices: a scalar integer for each dimension; a negative one counts from the end.
      slice_sizes: the shape of the window.

    Raises:
      TypeError: the window does not fit the shape.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 0., 4.]))
      >>> sparse.bcoo_dynamic_slice(m, (1,), (3,)).todense()
      Array([2., 0., 4.], dtype=float32)
    """
    starts = [jnp.asarray(s) for s in start_indices]
    sizes = [operator.index(n) for n in slice_sizes]
    if not len(starts) == len(sizes) == mat.ndim or any(not 0 <= n <= full for n, full in zip(sizes, mat.shape)):
        raise TypeError(f"no window of shape {mat.shape}: {len(starts)} starts, {sizes=}")
    starts = [jnp.clip(jnp.where(s < 0, s + n, s), 0, n - size) for s, n, size in zip(starts, mat.shape, sizes)]
    return _window(mat, starts, sizes, [1] * mat.ndim)


def bcoo_gather(
    operand: BCOO,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """Return the windows of a sparse array at given positions, like `jax.lax.gather`.

    Each position makes one element of the batch. The batch dimensions are batch dimensions of the layout if they come
    first in the result, and sparse dimensions otherwise.

    Args:
      operand: a BCOO array.
      start_indices: an integer array ``[..., number of indexed dimensions]``.
      dimension_numbers: a `GatherDimensionNumbers` without batching dimensions.
      slice_sizes: the size of a window along each dimension of `operand`.
      unique_indices, indices_are_sorted: promises of the caller; no effect.
      mode: a `GatherScatterMode`, its name, or None. ``"fill"`` and None give zeros for a window that is not inside,
        the other modes move the window inside.
      fill_value: only 0 or None.

    Raises:
      NotImplementedError: batching dimensions, or a `fill_value` other than 0.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> numbers = lax.GatherDimensionNumbers(offset_dims=(0,), collapsed_slice_dims=(0,), start_index_map=(0,))
      >>> sparse.bcoo_gather(m, jnp.array([1]), numbers, (1, 2)).todense()
      Array([3., 0.], dtype=float32)
    """
    del unique_indices, indices_are_sorted  # promises that are used for other formats
    numbers = GatherDimensionNumbers(*dimension_numbers)
    if numbers.operand_batching_dims or (fill_value is not None and fill_value != 0):
        raise NotImplementedError("bcoo_gather with batching dimensions, or a fill_value other than 0")
    start_indices = jnp.asarray(start_indices)
    fills = GatherScatterMode.from_any(mode) is GatherScatterMode.FILL_OR_DROP
    batch = start_indices.shape[:-1]
    last = [operand.shape[d] - slice_sizes[d] for d in numbers.start_index_map]

    def one(vector, mat):
        starts: list[Any] = [0] * mat.ndim
        for i, d in enumerate(numbers.start_index_map):
            starts[d] = jnp.clip(vector[i], 0, last[i])
        out = _window(mat, starts, slice_sizes, [1] * mat.ndim)
        if fills:
            inside = ((vector >= 0) & (vector <= jnp.array(last, vector.dtype))).all()
            out = BCOO(_keep(out, jnp.broadcast_to(inside, out.indices.shape[:-1])), shape=out.shape)
        return bcoo_squeeze(out, dimensions=numbers.collapsed_slice_dims)

    out = nfold_vmap(one, len(batch), broadcasted=False, in_axes=(0, None))(start_indices, operand)
    n, offset = len(batch), numbers.offset_dims
    places = [d for d in range(out.ndim) if d not in offset] + list(offset)  # the position of each dimension
    permutation = [places.index(d) for d in range(out.ndim)]
    if permutation[:n] != list(range(n)):
        out = bcoo_update_layout(out, n_batch=0, n_dense=0)
    return bcoo_transpose(out, permutation=permutation)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with the order of elements reversed along some dimensions.

    Args:
      operand: BCOO array.
      dimensions: the dimensions.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
      >>> sparse.bcoo_rev(m, dimensions=(0,)).todense()
      Array([3., 2., 0.], dtype=float32)
    """
    b, e = _edges(operand)
    dimensions = [axis_index(d, operand.ndim) for d in dimensions]
    batch = [d for d in dimensions if d < b]
    data = jnp.flip(operand.data, (*batch, *(d - e + b + 1 for d in dimensions if d >= e)))
    indices = jnp.flip(operand.indices, batch)
    sparse = [d - b for d in dimensions if b <= d < e]
    if sparse:
        limits = jnp.array(operand.sparse_shape, indices.dtype)
        there = ((indices >= 0) & (indices < limits)).all(-1, keepdims=True)
        flag = np.isin(np.arange(operand.n_sparse), sparse)
        indices = jnp.where(there & flag, limits - 1 - indices, indices)
    return BCOO((data, indices), shape=operand.shape, unique_indices=operand.unique_indices)


def _new_layout(mat: BCOO, new: tuple) -> tuple[int, int]:
    """(n_batch, n_dense) of a new shape."""
    sizes = [math.prod(part) for part in (mat.batch_shape, mat.sparse_shape, mat.dense_shape)]
    for n_batch in range(len(new) + 1):
        if math.prod(new[:n_batch]) != sizes[0] or (not mat.n_batch and n_batch):
            continue
        for n_dense in range(len(new) - n_batch + 1):
            if not mat.n_dense and n_dense:
                continue
            middle = new[n_batch : len(new) - n_dense]
            if math.prod(middle) == sizes[1] and math.prod(new[len(new) - n_dense :]) == sizes[2]:
                return n_batch, n_dense
    raise ValueError(
        f"bcoo_reshape mixes no batch, sparse and dense dimensions: {mat} cannot have the shape {new}; change the layout"
        " with bcoo_update_layout first"
    )


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """The array in another shape, with separate batch, sparse and dense dimensions.

    Args:
      mat: a `BCOO` array.
      new_sizes: the shape of the result; one size may be -1, which stands for the fitting size.
      dimensions: a permutation of the axes to apply first.
      sharding: only None.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> sparse.bcoo_reshape(m, new_sizes=(4,)).todense()
      Array([0., 2., 3., 0.], dtype=float32)
    """
    if sharding is not None:
        raise NotImplementedError(public("bcoo_reshape has no sharding: use jax.lax.with_sharding_constraint"))
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    new = [operator.index(n) for n in new_sizes]
    if -1 in new:
        rest = -math.prod(new)
        new[new.index(-1)] = mat.size // rest if rest else 0
    new = tuple(new)
    if math.prod(new) != mat.size:
        raise ValueError(f"an array of shape {mat.shape} cannot have the shape {new}: the sizes differ")
    n_batch, n_dense = _new_layout(mat, new)
    batch, sparse = new[:n_batch], new[n_batch : len(new) - n_dense]
    data, indices = mat.data, mat.indices
    if batch != mat.batch_shape:
        b = mat.n_batch
        data, indices = (jnp.broadcast_to(x, (*mat.batch_shape, *x.shape[b:])) for x in (data, indices))
        data, indices = (x.reshape(*batch, *x.shape[b:]) for x in (data, indices))
    data = data.reshape(*data.shape[: n_batch + 1], *new[len(new) - n_dense :])
    if sparse != mat.sparse_shape:
        limits = jnp.array(mat.sparse_shape, indices.dtype)
        there = ((indices >= 0) & (indices < limits)).all(-1, keepdims=True)
        columns = tuple(indices[..., i] for i in range(mat.n_sparse))
        flat = (
            jnp.ravel_multi_index(columns, mat.sparse_shape, mode="clip")
            if columns
            else jnp.zeros(indices.shape[:-1], int)
        )
        columns = jnp.unravel_index(flat, sparse) if sparse else ()
        moved = jnp.stack(columns, -1).astype(indices.dtype) if sparse else indices[..., :0]
        if mat.n_sparse and not sparse:
            data = jnp.where(there[..., 0].reshape(there.shape[:-1] + (1,) * n_dense), data, jnp.zeros((), data.dtype))
        indices = jnp.where(there, moved, jnp.array(sparse, indices.dtype))
    return BCOO((data, indices), shape=new, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def bcoo_conv_general_dilated(
    lhs: BCOO,
    rhs: BCOO,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:
    """Return the convolution of two sparse arrays, like `jax.lax.conv_general_dilated`.

    The product of each pair of stored elements is added to one element of the result.

    Args:
      lhs: the input, with a batch, a feature and spatial dimensions; all are sparse dimensions.
      rhs: the kernel; all its dimensions are sparse dimensions.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as in `jax.lax.conv_general_dilated`.
      feature_group_count, batch_group_count: only 1.
      precision: no effect: products are added one by one.
      preferred_element_type: the dtype of the result; None: the promoted dtype of the operands.
      out_sharding: only None.

    Returns:
      A BCOO array. It stores an element per pair of stored elements, also where the element is 0.

    Raises:
      NotImplementedError: groups, or batch or dense dimensions of the operands' layout.

    Examples:

      >>> from jax.experimental import sparse

      >>> x = sparse.BCOO.fromdense(jnp.array([[[1., 0., 2., 0.]]]))
      >>> kernel = sparse.BCOO.fromdense(jnp.array([[[1., 10.]]]))
      >>> out = sparse.bcoo_conv_general_dilated(x, kernel, window_strides=(1,), padding=[(0, 0)])
      >>> out.todense()
      Array([[[ 1., 20.,  2.]]], dtype=float32)
    """
    del precision  # products of pairs, added one by one
    if feature_group_count != 1 or batch_group_count != 1 or out_sharding is not None:
        raise NotImplementedError("bcoo_conv_general_dilated with groups or out_sharding")
    if any(m.n_batch or m.n_dense for m in (lhs, rhs)):
        raise NotImplementedError(f"bcoo_conv_general_dilated of {lhs} and {rhs}: change their layout first")
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    n = lhs.ndim - 2
    ones = (1,) * n
    ld, rd, strides = (tuple(x or ones) for x in (lhs_dilation, rhs_dilation, window_strides))
    ls, rs = (tuple(m.shape[d] for d in spec[2:]) for m, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec)))
    if isinstance(padding, str):
        dilated = tuple((k - 1) * d + 1 for k, d in zip(rs, rd))
        padding = lax.padtype_to_pads([(k - 1) * d + 1 if k else 0 for k, d in zip(ls, ld)], dilated, strides, padding)
    result = _convolved_shape(lhs, rhs, strides, padding, ld, rd, numbers)
    li, ri = elements.columns(lhs.indices, numbers.lhs_spec), elements.columns(rhs.indices, numbers.rhs_spec)
    li, ri = li[:, None, :], ri[None, :, :]
    there = elements.inside(lhs.indices, lhs.shape)[:, None] & elements.inside(rhs.indices, rhs.shape)[None, :]
    there = there & (li[..., 1] == ri[..., 1])
    low = np.array([a for a, _ in padding], np.int32)
    at = li[..., 2:] * np.array(ld, np.int32) + low - ri[..., 2:] * np.array(rd, np.int32)
    step = np.array(strides, np.int32)
    out = tuple(result[d] for d in numbers.out_spec)
    there = there & ((at % step == 0) & (at >= 0) & (at // step < np.array(out[2:], np.int32))).all(-1)
    pairs = there.shape
    columns = [jnp.broadcast_to(x, pairs) for x in (li[..., 0], ri[..., 0], *(at[..., i] // step[i] for i in range(n)))]
    columns = [columns[list(numbers.out_spec).index(d)] for d in range(n + 2)]
    dtype = preferred_element_type or jnp.result_type(lhs.dtype, rhs.dtype)
    data = (lhs.data.astype(dtype)[:, None] * rhs.data.astype(dtype)[None]).reshape(-1)
    indices = jnp.stack(columns, -1).reshape(-1, n + 2)
    return BCOO(elements.keep(data, indices, there.reshape(-1), result), shape=result)


def _convolved_shape(lhs: BCOO, rhs: BCOO, strides, padding, ld, rd, numbers) -> tuple:
    """The shape of a convolution."""
    spatial = [
        max(0, ((k - 1) * d + 1 if k else 0) + a + z - ((w - 1) * r + 1)) // s + 1
        if ((k - 1) * d + 1 if k else 0) + a + z >= (w - 1) * r + 1
        else 0
        for k, d, (a, z), w, r, s in zip(
            [lhs.shape[d] for d in numbers.lhs_spec[2:]],
            ld,
            padding,
            [rhs.shape[d] for d in numbers.rhs_spec[2:]],
            rd,
            strides,
        )
    ]
    out = [0] * lhs.ndim
    sizes = (lhs.shape[numbers.lhs_spec[0]], rhs.shape[numbers.rhs_spec[0]], *spatial)
    for d, n in zip(numbers.out_spec, sizes):
        out[d] = n
    return tuple(out)
