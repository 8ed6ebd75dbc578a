"""Batched coordinates (BCOO): the class, and conversions, sorting and layouts of such arrays.

An array has `n_batch` batch dimensions, then `n_sparse` sparse ones, then `n_dense` dense ones. Its `data` have shape
``(*batch, nse, *dense)``, its `indices` ``(*batch, nse, n_sparse)``; size 1 of a batch dimension is broadcast.
Elements with indices out of bounds are padding. Elements with equal indices are added.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, pytree
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.tracing import Tracer
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import axis_index
from bedrax.sparse import elements
from bedrax.sparse.formats import (
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    composed,
    counting_dtype,
    mapped_by_batch,
    nfold_vmap,
)

__all__ = [
    "BCOO",
    "CUSPARSE_DATA_DTYPES",
    "CUSPARSE_INDEX_DTYPES",
    "BCOOProperties",
    "Buffer",
    "bcoo_eliminate_zeros",
    "bcoo_extract",
    "bcoo_extract_p",
    "bcoo_fromdense",
    "bcoo_fromdense_p",
    "bcoo_sort_indices",
    "bcoo_sort_indices_p",
    "bcoo_sum_duplicates",
    "bcoo_sum_duplicates_p",
    "bcoo_todense",
    "bcoo_todense_p",
    "bcoo_transpose",
    "bcoo_transpose_p",
    "bcoo_update_layout",
]


CUSPARSE_DATA_DTYPES: list[Any] = []  # dtypes of products by a GPU library: none here
CUSPARSE_INDEX_DTYPES: list[Any] = []


class Buffer(Protocol):
    """An object with a shape and a dtype.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import bcoo

      >>> def number_of_bytes(x: bcoo.Buffer) -> int:
      ...     return x.dtype.itemsize * int(np.prod(x.shape))
      ...
      >>> number_of_bytes(jnp.ones((2, 3))), number_of_bytes(jax.ShapeDtypeStruct((3,), "int8"))
      (24, 3)
    """

    shape: Sequence[int]
    dtype: Any


class BCOOProperties(NamedTuple):
    """The kinds of the dimensions of an array, and its number of stored elements.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import bcoo

      >>> layout = bcoo.BCOOProperties(n_batch=1, n_sparse=1, n_dense=0, nse=5)
      >>> layout.n_batch + layout.n_sparse + layout.n_dense, layout.nse
      (2, 5)
    """

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


@mapped_by_batch
@pytree.register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array in batched coordinates.

    Args:
      args: ``(data, indices)``; see the module.
      shape: the shape of the array.
      indices_sorted: promise that the indices of each element of the batch are in lexicographic order.
      unique_indices: promise that no two elements have equal indices, except padding.

    Raises:
      ValueError: the shapes do not fit.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> m.nse, m.shape
      (2, (2, 2))
      >>> m @ jnp.array([1., 10.])
      Array([20.,  3.], dtype=float32)
      >>> m.indices
      Array([[0, 1],
             [1, 0]], dtype=int32)
    """

    _arrays = ("data", "indices")
    _static = ("shape", "indices_sorted", "unique_indices")
    indices: Any

    def __init__(
        self, args: tuple[Any, ...], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        super().__init__(args, shape=dims.canonical_shape(shape))
        self.data: Any
        self.data, self.indices = (jnp.asarray(x) for x in args)
        index_dtype = counting_dtype(self.indices.dtype, dims.size(self.shape))
        if index_dtype != self.indices.dtype:
            self.indices = self.indices.astype(index_dtype)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        _validate(self)

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        return self.data.ndim - 1 - self.n_batch

    @property
    def nse(self) -> int:
        """The number of stored elements, per element of the batch."""
        return self.indices.shape[-2]

    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.shape[: self.n_batch]

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch : self.n_batch + self.n_sparse]

    @property
    def dense_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch + self.n_sparse :]

    def _layout(self) -> str:
        return "".join(f", {n}={getattr(self, n)}" for n in ("n_batch", "n_dense") if getattr(self, n))

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """See `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The array of a matrix of `scipy.sparse`, with ``n_dense == n_batch == 0``."""
        if n_dense or n_batch:
            raise NotImplementedError(
                f"matrices of SciPy have no batch or dense dimensions, got {n_batch=}, {n_dense=}"
            )
        mat = mat.tocoo()
        indices = np.column_stack([mat.row, mat.col])
        indices = indices.astype(counting_dtype(index_dtype or np.int32, math.prod(mat.shape)))
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0):
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"the layout {n_batch=}, {n_dense=}, {nse=} does not fit the shape {shape}")
        batch, dense = shape[:n_batch], shape[n_batch + n_sparse :]
        sizes = shape[n_batch : n_batch + n_sparse]
        module = jnp if any(map(dims.is_symbolic, (*batch, *sizes))) else np
        indices = module.broadcast_to(module.array(sizes, index_dtype), (*batch, nse, n_sparse))
        data = jnp.zeros((*batch, nse, *dense), dtype)
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", n_batch: int = 0, n_dense: int = 0):
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_batch < 0 or n_dense < 0:
            raise ValueError(f"a matrix has no layout {n_batch=}, {n_dense=}")
        if n_sparse == 2:
            rows = np.arange(max(0, -k), max(0, -k, min(N, M - k)))
            indices = np.stack([rows, rows + k], 1).astype(counting_dtype(index_dtype, N * M))
            return cls((jnp.ones(len(rows), dtype), indices), shape=(N, M), indices_sorted=True, unique_indices=True)
        return bcoo_fromdense(
            jnp.eye(N, M, k, dtype=dtype), n_batch=n_batch, n_dense=n_dense, index_dtype=np.dtype(index_dtype)
        )

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """See `bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with sorted and unique indices; see `bcoo_sum_duplicates` and `bcoo_eliminate_zeros`."""
        return bcoo_eliminate_zeros(self, nse) if remove_zeros else bcoo_sum_duplicates(self, nse)

    def sort_indices(self) -> BCOO:
        """The array with sorted indices."""
        return bcoo_sort_indices(self)

    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its axes permuted, or reversed within batch, sparse and dense ones."""
        if axes is None:
            if sum(map(bool, (self.n_batch, self.n_sparse, self.n_dense))) > 1:
                raise NotImplementedError(
                    f"all axes are reversed only where they are all sparse, got {self}; give a permutation that keeps"
                    " batch, sparse and dense axes apart"
                )
            axes = range(self.ndim)[::-1]
        axes = [axis_index(a, self.ndim) for a in axes]
        return bcoo_transpose(self, permutation=axes)


def _validate(mat: BCOO) -> None:
    data, indices, shape = mat.data, mat.indices, mat.shape
    problem = None
    if indices.ndim < 2 or not jnp.issubdtype(indices.dtype, np.integer):
        problem = "indices are integers of rank 2 at least"
    elif mat.n_dense < 0 or mat.n_batch + mat.n_sparse + mat.n_dense != len(shape):
        problem = f"{mat.n_batch} batch and {mat.n_sparse} sparse dimensions"
    elif any(
        n not in (1, full) for x in (data, indices) for n, full in zip(x.shape[: mat.n_batch], shape, strict=False)
    ):
        problem = "batch dimensions of the size given in the shape, or 1"
    elif data.shape[mat.n_batch] != mat.nse or data.shape[mat.n_batch + 1 :] != mat.dense_shape:
        problem = f"data of shape (*batch, {mat.nse}, *{mat.dense_shape})"
    if problem:
        raise ValueError(
            f"BCOO of shape {shape}: expected {problem}, got data of shape {data.shape} and indices"
            f" {indices.dtype.name}{list(indices.shape)}"
        )


# ---- dense arrays


def mapped(fun: Callable[..., Any], n_batch: int, *args: Array) -> Any:
    """`fun` mapped over the first `n_batch` dimensions; size 1 is broadcast."""
    return nfold_vmap(fun, n_batch)(*args)


def _todense(data, indices, *, spinfo: SparseInfo):
    n_batch = indices.ndim - 2
    sparse = spinfo.shape[n_batch : n_batch + indices.shape[-1]]
    out = mapped(lambda d, i: elements.todense(d, i, sparse), n_batch, data, indices)
    return jnp.broadcast_to(out, spinfo.shape)


bcoo_todense_p: Final = composed("bcoo_todense", _todense)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array of a sparse one.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO((jnp.array([5.]), jnp.array([[1]])), shape=(3,))
      >>> sparse.bcoo_todense(m)
      Array([0., 5., 0.], dtype=float32)
    """
    return bcoo_todense_p.bind(mat.data, mat.indices, spinfo=mat._info)


def count_stored(mask: Array, n_batch: int) -> Any:
    """The maximum over the batch of the number of true elements of a mask."""
    return mask.reshape(*mask.shape[:n_batch], -1).sum(-1).max(initial=0)


def known_count(what: str, nse: int | None, count: Any) -> int:
    """`nse` as an int, or else `count`. Raises ConcretizationTypeError if the count is traced."""
    if nse is not None:
        return dims.integer(nse, "nse")
    value = count.concrete() if isinstance(count, Tracer) else count
    if value is None:
        raise ConcretizationTypeError(
            count, f"{what} makes an array whose size depends on values; pass the number of elements to store: nse=..."
        )
    return int(value)


def _nonzero(mat, n_dense: int):
    mask = mat != jnp.zeros((), mat.dtype)
    return mask.any(tuple(range(mat.ndim - n_dense, mat.ndim))) if n_dense else mask


def _fromdense(mat, *, nse, n_batch, n_dense, index_dtype):
    mask = _nonzero(mat, n_dense)
    indices = nfold_vmap(lambda m: elements.positions(m, nse, index_dtype), n_batch, broadcasted=False)(mask)
    return extracted(indices, mat), indices


bcoo_fromdense_p: Final = composed("bcoo_fromdense", _fromdense, multiple_results=True)


def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCOO:
    """The sparse array of a dense one.

    Args:
      mat: the array.
      nse: the number of elements to store per element of the batch; needed for traced values.
      n_batch, n_dense: the number of leading batch dimensions, and of trailing dense dimensions.
      index_dtype: the dtype of the indices.

    Raises:
      ConcretizationTypeError: `nse` is missing, and the values are traced.

    Examples:

      >>> from jax.experimental import sparse

      >>> sparse.bcoo_fromdense(jnp.array([0., 5., 0., 7.])).data
      Array([5., 7.], dtype=float32)
    """
    mat = jnp.asarray(mat)
    n_batch, n_dense = dims.integer(n_batch, "n_batch"), dims.integer(n_dense, "n_dense")
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"{n_batch=} and {n_dense=} do not fit an array of rank {mat.ndim}")
    if nse is None:
        nse = known_count("bcoo_fromdense", None, count_stored(_nonzero(mat, n_dense), n_batch))
    data, indices = bcoo_fromdense_p.bind(
        mat,
        nse=dims.integer(nse, "nse"),
        n_batch=n_batch,
        n_dense=n_dense,
        index_dtype=counting_dtype(index_dtype, mat.size),
    )
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def extracted(indices: Array, mat: Array) -> Array:
    return mapped(elements.extract, indices.ndim - 2, indices, mat)


bcoo_extract_p: Final = composed("bcoo_extract", extracted)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the indices of a sparse one.

    Args:
      sparr: a `BCOO` array with the indices.
      arr: a dense array of the same shape.
      assume_unique: whether indices are unique. Default: the promise of the array. If not, the first one of elements
        with equal indices gets the value, and the others 0.

    Examples:

      >>> from jax.experimental import sparse

      >>> pattern = sparse.BCOO.fromdense(jnp.array([[0., 1.], [1., 0.]]))
      >>> sparse.bcoo_extract(pattern, jnp.array([[5., 6.], [7., 8.]])).data
      Array([6., 7.], dtype=float32)
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract takes arrays of one shape, got {sparr.shape} and {arr.shape}")
    data = bcoo_extract_p.bind(sparr.indices, arr)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        first = mapped(lambda i: elements.first_of_each(i, sparr.sparse_shape), sparr.n_batch, sparr.indices)
        first = first.reshape(first.shape + (1,) * sparr.n_dense)
        data = jnp.where(first, data, jnp.zeros((), data.dtype))
    return BCOO((data, sparr.indices), **sparr._info._asdict())


# ---- order and duplicates


def _with_indices(fun, data, indices):
    """`fun` of data and indices of each element of the batch, broadcast to its full size."""
    n_batch = indices.ndim - 2
    batch = jnp.broadcast_shapes(data.shape[:n_batch], indices.shape[:n_batch])
    data = jnp.broadcast_to(data, (*batch, *data.shape[n_batch:])) if 0 not in batch else data
    return mapped(fun, n_batch, data, indices)


def _sort_indices(data, indices, *, spinfo):
    if not indices.shape[-2]:
        return data, indices

    def sort(d, i):
        by = elements.order(i)
        return d[by], i[by]

    return _with_indices(sort, data, indices)


bcoo_sort_indices_p: Final = composed("bcoo_sort_indices", _sort_indices, multiple_results=True)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its elements in lexicographic order of their indices.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO((jnp.array([3., 2.]), jnp.array([[1], [0]])), shape=(2,))
      >>> sparse.bcoo_sort_indices(m).data
      Array([2., 3.], dtype=float32)
    """
    if mat.indices_sorted:
        return mat
    data, indices = bcoo_sort_indices_p.bind(mat.data, mat.indices, spinfo=mat._info)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def _sum_duplicates(data, indices, *, spinfo, nse):
    n_batch = indices.ndim - 2
    sparse = spinfo.shape[n_batch : n_batch + indices.shape[-1]]
    return _with_indices(lambda d, i: elements.sum_duplicates(d, i, sparse, nse), data, indices)


bcoo_sum_duplicates_p: Final = composed("bcoo_sum_duplicates", _sum_duplicates, multiple_results=True)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with sorted, unique indices.

    Args:
      mat: a `BCOO` array.
      nse: the number of elements to store; needed for traced indices. If it is too small, the last elements are lost.

    Raises:
      ConcretizationTypeError: `nse` is missing, and the indices are traced.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO((jnp.array([3., 2.]), jnp.array([[1], [1]])), shape=(2,))
      >>> sparse.bcoo_sum_duplicates(m, nse=1).data
      Array([5.], dtype=float32)
    """
    if nse is None and mat.unique_indices and mat.indices_sorted:
        return mat
    if nse is None:
        counts = mapped(lambda i: elements.groups(i, mat.sparse_shape)[2], mat.n_batch, mat.indices)
        nse = known_count("bcoo_sum_duplicates", None, counts.max(initial=0) if mat.n_batch else counts)
    data, indices = bcoo_sum_duplicates_p.bind(mat.data, mat.indices, spinfo=mat._info, nse=dims.integer(nse, "nse"))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """`bcoo_sum_duplicates` without the elements that are zero (in all of their dense dimensions).

    Args:
      mat, nse: as in `bcoo_sum_duplicates`.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import bcoo

      >>> mat = sparse.BCOO((jnp.array([1., 0., 3.]), jnp.array([[0], [1], [2]])), shape=(4,))
      >>> less = bcoo.bcoo_eliminate_zeros(mat)
      >>> mat.nse, less.nse, less.data
      (3, 2, Array([1., 3.], dtype=float32))
    """

    def mark(data, indices):
        there = (data != jnp.zeros((), data.dtype)).any(tuple(range(1, data.ndim)))
        return elements.keep(data, indices, there, mat.sparse_shape)

    data, indices = _with_indices(mark, mat.data, mat.indices)
    return bcoo_sum_duplicates(BCOO((data, indices), shape=mat.shape), nse)


# ---- axes


def _split_axes(mat: BCOO, permutation: Sequence[int]) -> tuple:
    """A permutation, split into those of batch, sparse and dense dimensions, each counted from 0."""
    edges = (0, mat.n_batch, mat.n_batch + mat.n_sparse, mat.ndim)
    parts = [tuple(permutation[a:b]) for a, b in itertools.pairwise(edges)]
    if any(set(part) != set(range(a, b)) for part, a, b in zip(parts, edges, edges[1:])):
        raise NotImplementedError(
            f"a transpose permutes batch, sparse and dense dimensions among themselves, got {tuple(permutation)} for {mat};"
            " change the layout with bcoo_update_layout first"
        )
    return tuple(tuple(d - a for d in part) for part, a in zip(parts, edges))


def _transpose(data, indices, *, permutation, spinfo):
    batch, sparse, dense = permutation
    n = len(batch)
    indices = elements.columns(indices, sparse).transpose(*batch, n, n + 1)
    return data.transpose(*batch, n, *(n + 1 + d for d in dense)), indices


bcoo_transpose_p: Final = composed("bcoo_transpose", _transpose, multiple_results=True)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with permuted axes, separately for batch, sparse and dense axes.

    Args:
      mat: BCOO array.
      permutation: for each axis of the result, that of `mat`.

    Raises:
      ValueError: an axis is missing or occurs twice.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.], [0., 3.]]))
      >>> sparse.bcoo_transpose(m, permutation=(1, 0)).todense()
      Array([[0., 0.],
             [2., 3.]], dtype=float32)
    """
    permutation = tuple(operator.index(d) for d in permutation)
    if sorted(permutation) != list(range(mat.ndim)):
        raise ValueError(f"{permutation} is not a permutation of the {mat.ndim} axes")
    if permutation == tuple(range(mat.ndim)):
        return mat
    parts = _split_axes(mat, permutation)
    data, indices = bcoo_transpose_p.bind(mat.data, mat.indices, permutation=parts, spinfo=mat._info)
    shape = tuple(mat.shape[d] for d in permutation)
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


def _one_more_sparse(mat: BCOO, dense: bool) -> BCOO:
    """The array with its last batch dimension as the first sparse one, or with its first dense one as the last
    sparse."""
    n, k = mat.n_batch, mat.nse
    size = mat.dense_shape[0] if dense else mat.batch_shape[-1]
    column = lax.iota(mat.indices.dtype, size)
    if dense:
        data = mat.data.reshape(*mat.data.shape[:n], k * size, *mat.data.shape[n + 2 :])
        indices = jnp.repeat(mat.indices, size, axis=n)
        new = jnp.broadcast_to(jnp.tile(column, k)[:, None], (*indices.shape[:-1], 1))
        indices = jnp.concatenate([indices, new], -1)
    else:
        batch = mat.data.shape[: n - 1]
        data = jnp.broadcast_to(mat.data, (*batch, size, *mat.data.shape[n:]))
        data = data.reshape(*batch, size * k, *mat.data.shape[n + 1 :])
        batch = mat.indices.shape[: n - 1]
        indices = jnp.broadcast_to(mat.indices, (*batch, size, k, mat.n_sparse))
        new = jnp.broadcast_to(column[:, None, None], (*batch, size, k, 1))
        # padding stays padding: in an array without other indices, the new index would make it an element
        limits = jnp.array(mat.sparse_shape, indices.dtype)
        there = ((indices >= 0) & (indices < limits)).all(-1, keepdims=True)
        new = jnp.where(there, new, jnp.array(size, new.dtype))
        indices = jnp.concatenate([new, indices], -1).reshape(*batch, size * k, mat.n_sparse + 1)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def _one_less_sparse(mat: BCOO, dense: bool) -> BCOO:
    """The inverse of `_one_more_sparse`: every element of the new dimension has space for all stored elements."""
    n = mat.n_batch
    if dense:
        size = mat.sparse_shape[-1]
        here = mat.indices[..., -1][..., None] == lax.iota(mat.indices.dtype, size)
        here = here.reshape(here.shape + (1,) * mat.n_dense)
        spread = jnp.expand_dims(mat.data, n + 1)
        data = jnp.where(here, spread, jnp.zeros((), mat.dtype))
        return BCOO((data, mat.indices[..., :-1]), shape=mat.shape)
    size = mat.sparse_shape[0]
    number = lax.iota(mat.indices.dtype, size)[:, None]
    here = mat.indices[..., 0][..., None, :] == number
    limits = jnp.array(mat.sparse_shape[1:], mat.indices.dtype)
    indices = jnp.where(here[..., None], mat.indices[..., None, :, 1:], limits)
    here = here.reshape(here.shape + (1,) * mat.n_dense)
    data = jnp.where(here, jnp.expand_dims(mat.data, n), jnp.zeros((), mat.dtype))
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense dimensions.

    Args:
      mat: a `BCOO` array.
      n_batch, n_dense: the numbers of batch and dense dimensions; None: as in `mat`.
      on_inefficient: the reaction if sparse dimensions become batch or dense ones, so that each element of these has
        space for all: ``"error"``, ``"warn"``, or None.

    Raises:
      SparseEfficiencyError: in this case, if `on_inefficient` is ``"error"``.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> sparse.bcoo_update_layout(m, n_batch=1, on_inefficient=None).n_batch
      1
    """
    n_batch = mat.n_batch if n_batch is None else dims.integer(n_batch, "n_batch")
    n_dense = mat.n_dense if n_dense is None else dims.integer(n_dense, "n_dense")
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"an array of rank {mat.ndim} has no layout {n_batch=}, {n_dense=}")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient is 'error', 'warn' or None, got {on_inefficient!r}")
    grows = [
        f"{k} from {a} to {b}"
        for k, a, b in (("n_batch", mat.n_batch, n_batch), ("n_dense", mat.n_dense, n_dense))
        if b > a
    ]
    if grows and on_inefficient:
        text = f"For matrix of shape {mat.shape}, increasing {' and '.join(grows)} results in inefficient storage"
        if on_inefficient == "error":
            raise SparseEfficiencyError(f"{text}; pass on_inefficient='warn' or None if that is intended")
        warnings.warn(f"{text}; on_inefficient=None suppresses this warning", SparseEfficiencyWarning, stacklevel=2)
    while mat.n_dense > n_dense:
        mat = _one_more_sparse(mat, True)
    while mat.n_batch > n_batch:
        mat = _one_more_sparse(mat, False)
    while mat.n_batch < n_batch:
        mat = _one_less_sparse(mat, False)
    while mat.n_dense < n_dense:
        mat = _one_less_sparse(mat, True)
    return mat


def index_dtype_of(mats: Sequence[BCOO]) -> Any:
    """The dtype for the indices of all arrays."""
    return functools.reduce(jnp.promote_types, [m.indices.dtype for m in mats])
