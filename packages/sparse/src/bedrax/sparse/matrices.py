"""Matrices without batches: coordinates (COO), compressed rows (CSR) and columns (CSC).

They hold arrays and multiply dense ones; other operations convert to `BCOO`, which has all operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

import bedrax.numpy as jnp
from bedrax import pytree
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.core.defining import named
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.sparse.bcoo import BCOO, bcoo_fromdense
from bedrax.sparse.bcsr import BCSR
from bedrax.sparse.formats import JAXSparse, Shape, SparseInfo, composed

__all__ = [
    "COO",
    "COOInfo",
    "CSC",
    "CSR",
    "coo_fromdense",
    "coo_fromdense_p",
    "coo_matmat",
    "coo_matmat_p",
    "coo_matvec",
    "coo_matvec_p",
    "coo_todense",
    "coo_todense_p",
    "csr_fromdense",
    "csr_fromdense_p",
    "csr_matmat",
    "csr_matmat_p",
    "csr_matvec",
    "csr_matvec_p",
    "csr_todense",
    "csr_todense_p",
]


class COOInfo(NamedTuple):
    """The static data of a matrix of coordinates.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import coo

      >>> mat = sparse.COO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> mat._info == coo.COOInfo((2, 2), rows_sorted=True)
      True
    """

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


class _Matrix(JAXSparse):
    """A matrix of a format with products with dense arrays."""

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        super().__init__(args, shape=dims.canonical_shape(shape))
        if len(self.shape) != 2:
            raise ValueError(f"{type(self).__name__} is a format of matrices, got the shape {self.shape}")
        for name, x in zip(self._arrays, args, strict=True):
            setattr(self, name, jnp.asarray(x))

    def _bcoo(self) -> BCOO:
        raise NotImplementedError

    def todense(self) -> Array:
        """The dense matrix."""
        return self._bcoo().todense()

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum over some axes, as a `BCOO` array, or over all."""
        return self._bcoo().sum(*args, **kwargs)

    def _times(self, other, transpose: bool = False):
        if isinstance(other, JAXSparse):
            return self._refuse("product with a sparse array")
        other = jnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"the product of {self} with an array of rank {other.ndim}")
        mat = self._bcoo()
        return (mat.T if transpose else mat) @ other

    def __matmul__(self, other: ArrayLike) -> Array:
        return self._times(other)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", nse: int = 0):
        return cls._from_bcoo(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, nse=nse))

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        return cls._from_bcoo(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype))

    @classmethod
    def fromdense(cls, mat: Array, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO | CSC | CSR:
        """The matrix of a dense one; `nse`: the number of elements to store, needed for traced values."""
        mat = jnp.asarray(mat)
        return cls._from_bcoo(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def _from_bcoo(cls, mat: BCOO):
        raise NotImplementedError


@pytree.register_pytree_node_class
class COO(_Matrix):
    """A matrix in coordinates.

    Args:
      args: ``(data, row, col)``, each of shape ``(nse,)``.
      shape: the shape of the matrix.
      rows_sorted, cols_sorted: promises about the order of elements.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.COO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> m.row, m.col
      (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
    """

    _arrays = ("data", "row", "col")
    _static = ("shape", "rows_sorted", "cols_sorted")
    row: Any
    col: Any

    def __init__(
        self, args: tuple[Any, ...], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        super().__init__(args, shape=shape)
        self.rows_sorted, self.cols_sorted = rows_sorted, cols_sorted

    _info = property(lambda self: COOInfo(self.shape, self.rows_sorted, self.cols_sorted))

    def _bcoo(self):
        return BCOO((self.data, jnp.stack([self.row, self.col], 1)), shape=self.shape, indices_sorted=self.rows_sorted)

    @classmethod
    def _from_bcoo(cls, mat):
        return cls((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape, rows_sorted=mat.indices_sorted)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = np.int32) -> Any:
        """The matrix of a matrix of `scipy.sparse`."""
        return cls._from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype))

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The transposed matrix; `axes` is None or (1, 0)."""
        _only_transpose(axes)
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self.cols_sorted,
            cols_sorted=self.rows_sorted,
        )


def _only_transpose(axes) -> None:
    if axes is not None and tuple(axes) != (1, 0):
        raise NotImplementedError(f"a transpose of a matrix swaps its axes, got axes={axes}")


class _Compressed(_Matrix):
    """Compressed rows, of the matrix or of its transpose."""

    _arrays = ("data", "indices", "indptr")
    indices: Any
    indptr: Any
    _by_rows = True

    def _rows(self) -> BCSR:
        shape = self.shape if self._by_rows else self.shape[::-1]
        return BCSR((self.data, self.indices, self.indptr), shape=shape)

    def _bcoo(self):
        mat = self._rows().to_bcoo()
        return mat if self._by_rows else mat.T

    @classmethod
    def _from_bcoo(cls, mat):
        rows = BCSR.from_bcoo(mat if cls._by_rows else mat.T)
        return cls((rows.data, rows.indices, rows.indptr), shape=mat.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC | CSR:
        """The transposed matrix, of the other format; `axes` is None or (1, 0)."""
        _only_transpose(axes)
        other = CSC if self._by_rows else CSR
        return other((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@pytree.register_pytree_node_class
class CSR(_Compressed):
    """A matrix in compressed rows: ``(data, indices, indptr)``, see `scipy.sparse.csr_matrix`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.CSR.fromdense(jnp.array([[0., 2.], [3., 4.]]))
      >>> m.indptr
      Array([0, 1, 3], dtype=int32)
      >>> m @ jnp.array([1., 10.])
      Array([20., 43.], dtype=float32)
    """

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = np.int32) -> CSR:
        """The matrix of a matrix of `scipy.sparse`."""
        rows = BCSR.from_scipy_sparse(mat, index_dtype=index_dtype)
        return cls((rows.data, rows.indices, rows.indptr), shape=rows.shape)


@pytree.register_pytree_node_class
class CSC(_Compressed):
    """A matrix in compressed columns: ``(data, indices, indptr)``, see `scipy.sparse.csc_matrix`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.CSC.fromdense(jnp.array([[0., 2.], [3., 4.]]))
      >>> m.todense()
      Array([[0., 2.],
             [3., 4.]], dtype=float32)
    """

    _by_rows = False


class _FromDense(Protocol):
    def __call__(self, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> Any: ...


class _ToDense(Protocol):
    def __call__(self, mat: Any) -> Array: ...


class _MatVec(Protocol):
    def __call__(self, mat: Any, v: ArrayLike, transpose: bool = False) -> Array: ...


class _MatMat(Protocol):
    def __call__(self, mat: Any, B: ArrayLike, *, transpose: bool = False) -> Array: ...


class _Functions(NamedTuple):
    fromdense: _FromDense
    fromdense_p: Primitive
    todense: _ToDense
    todense_p: Primitive
    matvec: _MatVec
    matvec_p: Primitive
    matmat: _MatMat
    matmat_p: Primitive


def _functions(name: str, cls: Any, examples: dict[str, str]) -> _Functions:
    """The primitives of a format, and the functions that bind them. `examples` has an example for each function."""

    def fromdense_arrays(mat, *, nse, index_dtype):
        out = cls.fromdense(mat, nse=nse, index_dtype=index_dtype)
        return [getattr(out, n) for n in cls._arrays]

    def product(*arrays, spinfo, transpose):
        return cls(arrays[:-1], shape=spinfo.shape)._times(arrays[-1], transpose)

    fromdense_p = composed(f"{name}_fromdense", fromdense_arrays, multiple_results=True)
    todense_p = composed(f"{name}_todense", lambda *arrays, spinfo: cls(arrays, shape=spinfo.shape).todense())
    matvec_p, matmat_p = (composed(f"{name}_{what}", product) for what in ("matvec", "matmat"))

    def fromdense(mat, *, nse: int | None = None, index_dtype: Any = np.int32):
        mat = jnp.asarray(mat)
        nse = int(cls.fromdense(mat).nse) if nse is None else dims.integer(nse, "nse")
        return cls(fromdense_p.bind(mat, nse=nse, index_dtype=np.dtype(index_dtype)), shape=mat.shape)

    def bound(prim, mat, *operands, **params):
        if not isinstance(mat, cls):
            raise TypeError(f"{prim} takes a matrix of the format {cls.__name__}, got {type(mat)}")
        return prim.bind(*pytree.tree_leaves(mat), *operands, spinfo=SparseInfo(mat.shape), **params)

    def todense(mat):
        return bound(todense_p, mat)

    def matvec(mat, v, transpose: bool = False):
        return bound(matvec_p, mat, jnp.asarray(v), transpose=bool(transpose))

    def matmat(mat, B, *, transpose: bool = False):
        return bound(matmat_p, mat, jnp.asarray(B), transpose=bool(transpose))

    kind = f"`{cls.__name__}` matrix"
    transposed = "transpose: whether to multiply by the transpose."
    texts = {
        fromdense: f"""The {kind} of a dense one.

    Args:
      mat: matrix.
      nse: the number of elements to store; needed for traced values.
      index_dtype: the dtype of the indices.
    """,
        todense: f"The dense matrix of a `{cls.__name__}` one.",
        matvec: f"""The product of a {kind} with a vector.

    Args:
      mat: {kind}.
      v: array of rank 1.
      {transposed}
    """,
        matmat: f"""The product of a {kind} with a dense matrix.

    Args:
      mat: {kind}.
      B: array of rank 2.
      {transposed}
    """,
    }
    for function, text in texts.items():
        what = function.__name__
        named(function, f"{name}_{what}", __name__, text, examples[what])
    return _Functions(fromdense, fromdense_p, todense, todense_p, matvec, matvec_p, matmat, matmat_p)


_coo: Final = _functions(
    "coo",
    COO,
    {
        "fromdense": """
    >>> from jax.experimental import sparse

    >>> sparse.coo_fromdense(jnp.array([[0., 2.], [3., 0.]])).data
    Array([2., 3.], dtype=float32)
    """,
        "todense": """
    >>> from jax.experimental import sparse

    >>> sparse.coo_todense(sparse.coo_fromdense(jnp.array([[0., 2.], [3., 0.]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """,
        "matvec": """
    >>> from jax.experimental import sparse

    >>> m = sparse.coo_fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> sparse.coo_matvec(m, jnp.array([1., 10.]))
    Array([20.,  3.], dtype=float32)
    """,
        "matmat": """
    >>> from jax.experimental import sparse

    >>> m = sparse.coo_fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> sparse.coo_matmat(m, jnp.eye(2))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """,
    },
)
_csr: Final = _functions(
    "csr",
    CSR,
    {
        "fromdense": """
    >>> from jax.experimental import sparse

    >>> sparse.csr_fromdense(jnp.array([[0., 2.], [3., 0.]])).data
    Array([2., 3.], dtype=float32)
    """,
        "todense": """
    >>> from jax.experimental import sparse

    >>> sparse.csr_todense(sparse.csr_fromdense(jnp.array([[0., 2.], [3., 0.]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """,
        "matvec": """
    >>> from jax.experimental import sparse

    >>> m = sparse.csr_fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> sparse.csr_matvec(m, jnp.array([1., 10.]))
    Array([20.,  3.], dtype=float32)
    """,
        "matmat": """
    >>> from jax.experimental import sparse

    >>> m = sparse.csr_fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> sparse.csr_matmat(m, jnp.eye(2))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """,
    },
)
coo_fromdense: Final = _coo.fromdense
coo_fromdense_p: Final = _coo.fromdense_p
coo_todense: Final = _coo.todense
coo_todense_p: Final = _coo.todense_p
coo_matvec: Final = _coo.matvec
coo_matvec_p: Final = _coo.matvec_p
coo_matmat: Final = _coo.matmat
coo_matmat_p: Final = _coo.matmat_p
csr_fromdense: Final = _csr.fromdense
csr_fromdense_p: Final = _csr.fromdense_p
csr_todense: Final = _csr.todense
csr_todense_p: Final = _csr.todense_p
csr_matvec: Final = _csr.matvec
csr_matvec_p: Final = _csr.matvec_p
csr_matmat: Final = _csr.matmat
csr_matmat_p: Final = _csr.matmat_p
