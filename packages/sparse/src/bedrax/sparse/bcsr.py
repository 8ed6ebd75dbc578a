"""Batched compressed sparse rows (BCSR): the class. Its operations convert to coordinates.

`data` have shape ``(*batch, nse, *dense)``, `indices` (of columns) ``(*batch, nse)`` and `indptr`
``(*batch, rows + 1)``: row ``i`` stores the elements from ``indptr[i]`` up to ``indptr[i + 1]``. Elements from
``indptr[rows]`` on are padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import bedrax.numpy as jnp
from bedrax import pytree
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.core.public import public
from bedrax.core.typing import ArrayLike, Shape
from bedrax.sparse import bcoo, bcoo_products, bcoo_shaping
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.formats import JAXSparse, SparseInfo, composed, counting_dtype, mapped_by_batch, nfold_vmap

__all__ = [
    "BCSR",
    "BCSRProperties",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_dot_general_p",
    "bcsr_eliminate_zeros",
    "bcsr_extract",
    "bcsr_extract_p",
    "bcsr_fromdense",
    "bcsr_fromdense_p",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "bcsr_todense_p",
]


class BCSRProperties(NamedTuple):
    """The kinds of the dimensions of an array, and its number of stored elements.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import bcsr

      >>> layout = bcsr.BCSRProperties(n_batch=1, n_dense=0, nse=5)
      >>> layout.n_batch, layout.nse
      (1, 5)
    """

    n_batch: int
    n_dense: int
    nse: int


@mapped_by_batch
@pytree.register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array in batched compressed rows.

    Args:
      args: ``(data, indices, indptr)``; see the module.
      shape: the shape of the array: batch dimensions, rows, columns, dense dimensions.
      indices_sorted: promise that the columns of each row are in order.
      unique_indices: promise that no two elements have equal indices.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCSR.fromdense(jnp.array([[0., 2.], [3., 4.]]))
      >>> m.indptr
      Array([0, 1, 3], dtype=int32)
      >>> m @ jnp.array([1., 10.])
      Array([20., 43.], dtype=float32)
    """

    _arrays = ("data", "indices", "indptr")
    _static = ("shape", "indices_sorted", "unique_indices")
    indices: Any
    indptr: Any

    def __init__(
        self, args: tuple[Any, ...], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        super().__init__(args, shape=dims.canonical_shape(shape))
        self.data, self.indices, self.indptr = (jnp.asarray(x) for x in args)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        n = self.n_batch
        fits = n >= 0 and self.indptr.ndim == n + 1 and len(self.shape) == n + 2 + self.n_dense
        fits = fits and self.indptr.shape[-1] == self.shape[n] + 1 and self.data.shape[n] == self.nse
        if not fits or self.data.shape[n + 1 :] != self.shape[n + 2 :]:
            raise ValueError(
                f"BCSR of shape {self.shape}: expected data (*batch, nse, *dense), indices (*batch, nse) and indptr (*batch,"
                f" rows + 1), got shapes {self.data.shape}, {self.indices.shape}, {self.indptr.shape}"
            )

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = 2
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)
    nse = property(lambda self: self.indices.shape[-1], doc="The number of stored elements, per element of the batch.")
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _layout = BCOO._layout

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """See `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The array of a `BCOO` array with two sparse dimensions."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR has two sparse dimensions, got {arr}")
        arr = arr.sort_indices()
        rows = arr.sparse_shape[0]
        indices = arr.indices.astype(counting_dtype(arr.indices.dtype, arr.nse))
        indptr = nfold_vmap(lambda i: _pointers(i, rows), arr.n_batch)(indices)
        return cls(
            (arr.data, indices[..., 1], indptr), shape=arr.shape, indices_sorted=True, unique_indices=arr.unique_indices
        )

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The array of a matrix of `scipy.sparse`, with ``n_dense == n_batch == 0``."""
        if n_dense or n_batch:
            raise NotImplementedError(
                f"matrices of SciPy have no batch or dense dimensions, got {n_batch=}, {n_dense=}"
            )
        mat = mat.tocsr()
        dtype = counting_dtype(index_dtype or np.int32, *mat.shape, mat.nnz)
        return cls((mat.data, mat.indices.astype(dtype), mat.indptr.astype(dtype)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape, **options) -> BCSR:
        return cls.from_bcoo(BCOO._empty(shape, **options))

    @classmethod
    def _eye(cls, N, M, k, **options) -> BCSR:
        return cls.from_bcoo(BCOO._eye(N, M, k, **options))

    def to_bcoo(self) -> BCOO:
        """The array in coordinates."""
        indices = nfold_vmap(lambda i, p: _coordinates(i, p, self.shape[self.n_batch + 1]), self.n_batch)(
            self.indices, self.indptr
        )
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with sorted and unique indices."""
        return bcsr_eliminate_zeros(self, nse) if remove_zeros else bcsr_sum_duplicates(self, nse)

    def todense(self) -> Array:
        """The dense array."""
        return bcsr_todense(self)


def _pointers(indices, rows: Any):
    """The start of each row, for sorted indices; padding has a row out of bounds."""
    arange = jnp.arange if dims.is_symbolic(rows) else np.arange
    return jnp.searchsorted(indices[:, 0], arange(rows + 1, dtype=indices.dtype)).astype(indices.dtype)


def _coordinates(indices, indptr, columns: int):
    """Rows and columns of stored elements; out of bounds for padding."""
    at = np.arange(indices.shape[0], dtype=indptr.dtype)
    rows = jnp.searchsorted(indptr[1:], at, side="right").astype(indices.dtype)
    absent = at >= indptr[-1]
    return jnp.stack([rows, jnp.where(absent, jnp.array(columns, indices.dtype), indices)], -1)


def _as_bcoo(data, indices, indptr, spinfo: SparseInfo) -> BCOO:
    return BCSR((data, indices, indptr), **spinfo._asdict()).to_bcoo()


def _fromdense(mat, **options):
    out = BCSR.from_bcoo(bcoo.bcoo_fromdense(mat, **options))
    return out.data, out.indices, out.indptr


bcsr_fromdense_p: Final = composed("bcsr_fromdense", _fromdense, multiple_results=True)


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCSR:
    """The sparse array of a dense one, with two dimensions besides batch and dense ones; arguments as in `bcoo_fromdense`.

    Examples:

      >>> from jax.experimental import sparse

      >>> sparse.bcsr_fromdense(jnp.array([[0., 2.], [3., 0.]])).data
      Array([2., 3.], dtype=float32)
    """
    mat = jnp.asarray(mat)
    if mat.ndim != n_batch + 2 + n_dense:
        raise ValueError(f"BCSR has two sparse dimensions, got {n_batch=}, {n_dense=} for an array of rank {mat.ndim}")
    if nse is None:
        stored = bcoo.bcoo_fromdense(mat, n_batch=n_batch, n_dense=n_dense)
        nse = stored.nse
    parts = bcsr_fromdense_p.bind(
        mat, nse=dims.integer(nse, "nse"), n_batch=n_batch, n_dense=n_dense, index_dtype=np.dtype(index_dtype)
    )
    return BCSR(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


bcsr_todense_p: Final = composed(
    "bcsr_todense", lambda data, indices, indptr, *, spinfo: bcoo.bcoo_todense(_as_bcoo(data, indices, indptr, spinfo))
)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array of a sparse one.

    Examples:

      >>> from jax.experimental import sparse

      >>> sparse.bcsr_todense(sparse.BCSR.fromdense(jnp.array([[0., 2.], [3., 0.]])))
      Array([[0., 2.],
             [3., 0.]], dtype=float32)
    """
    return bcsr_todense_p.bind(mat.data, mat.indices, mat.indptr, spinfo=mat._info)


def _extract(indices, indptr, mat):
    n = indices.ndim - 1
    coordinates = nfold_vmap(lambda i, p: _coordinates(i, p, mat.shape[n + 1]), n)(indices, indptr)
    return bcoo.bcoo_extract_p.bind(coordinates, mat)


bcsr_extract_p: Final = composed("bcsr_extract", _extract)


def bcsr_extract(indices: Array, indptr: Array, mat: ArrayLike) -> Array:
    """The elements of a dense array at the positions of `indices` and `indptr`.

    Args:
      indices, indptr: the positions, as in a `BCSR` array.
      mat: array.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCSR.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> sparse.bcsr_extract(m.indices, m.indptr, jnp.array([[5., 6.], [7., 8.]]))
      Array([6., 7.], dtype=float32)
    """
    return bcsr_extract_p.bind(jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat))


def _dot_general(data, indices, indptr, rhs, *, spinfo, **options):
    return bcoo_products.bcoo_dot_general(_as_bcoo(data, indices, indptr, spinfo), rhs, **options)


bcsr_dot_general_p: Final = composed("bcsr_dot_general", _dot_general)


def bcsr_dot_general(
    lhs: BCSR,
    rhs: ArrayLike,
    *,
    dimension_numbers: tuple[tuple[Any, ...], ...],
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The product of a BCSR array and another array; arguments as in `bcoo_dot_general`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCSR.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> sparse.bcsr_dot_general(m, jnp.array([1., 10.]), dimension_numbers=(((1,), (0,)), ((), ())))
      Array([20.,  3.], dtype=float32)
    """
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        if isinstance(lhs, BCSR) and isinstance(rhs, BCSR | BCOO):
            rhs = rhs.to_bcoo() if isinstance(rhs, BCSR) else rhs
            out = bcoo_products.bcoo_dot_general(
                lhs.to_bcoo(), rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
            )
            return BCSR.from_bcoo(out) if out.n_sparse == 2 else out
        raise TypeError(f"bcsr_dot_general takes a BCSR array first, got {type(lhs)} and {type(rhs)}")
    if out_sharding is not None:
        raise NotImplementedError(public("bcsr_dot_general has no out_sharding: use jax.lax.with_sharding_constraint"))
    (lc, rc), (lb, rb) = dimension_numbers
    return bcsr_dot_general_p.bind(
        lhs.data,
        lhs.indices,
        lhs.indptr,
        jnp.asarray(rhs),
        spinfo=lhs._info,
        precision=precision,
        dimension_numbers=((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb))),
        preferred_element_type=preferred_element_type,
    )


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with the elements of one position added; arguments as in `bcoo_sum_duplicates`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCSR((jnp.array([3., 2.]), jnp.array([1, 1]), jnp.array([0, 2])), shape=(1, 2))
      >>> sparse.bcsr_sum_duplicates(m).todense()
      Array([[0., 5.]], dtype=float32)
    """
    return BCSR.from_bcoo(bcoo.bcoo_sum_duplicates(mat.to_bcoo(), nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array without elements that are zero; arguments as in `bcoo_eliminate_zeros`.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import bcsr

      >>> mat = sparse.BCSR((jnp.array([1., 0., 3.]), jnp.array([0, 1, 0]), jnp.array([0, 2, 3])), shape=(2, 2))
      >>> less = bcsr.bcsr_eliminate_zeros(mat)
      >>> less.data, less.indices, less.indptr
      (Array([1., 3.], dtype=float32), Array([0, 0], dtype=int32), Array([0, 1, 2], dtype=int32))
    """
    return BCSR.from_bcoo(bcoo.bcoo_eliminate_zeros(mat.to_bcoo(), nse))


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Shape, broadcast_dimensions: Any, sharding: Any = None) -> BCSR:
    """Broadcast a sparse array, so that the result has two sparse dimensions, too; arguments as in `bcoo_broadcast_in_dim`.

    Examples:

      >>> from jax.experimental import sparse

      >>> row = sparse.BCSR.fromdense(jnp.array([[0., 2., 3.]]))
      >>> sparse.bcsr_broadcast_in_dim(row, shape=(2, 1, 3), broadcast_dimensions=(1, 2)).todense()[1]
      Array([[0., 2., 3.]], dtype=float32)
    """
    return BCSR.from_bcoo(
        bcoo_shaping.bcoo_broadcast_in_dim(
            mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
        )
    )


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """The concatenation of BCSR arrays; arguments as in `bcoo_concatenate`.

    Examples:

      >>> from jax.experimental import sparse

      >>> top, bottom = (sparse.BCSR.fromdense(jnp.array([r])) for r in ([0., 2.], [3., 0.]))
      >>> sparse.bcsr_concatenate([top, bottom], dimension=0).todense()
      Array([[0., 2.],
             [3., 0.]], dtype=float32)
    """
    return BCSR.from_bcoo(bcoo_shaping.bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))
