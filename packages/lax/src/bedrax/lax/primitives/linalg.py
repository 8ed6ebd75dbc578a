"""Dense linear algebra: factorizations, eigenvalues and triangular systems of (batches of) matrices.

Every primitive works on the last two axes of its operands (the last one of vectors); the axes before them are
batch axes, equal for all operands. This module holds shapes and public functions; the definition of the results, down to
the packed forms of LAPACK (elementary reflectors, pivots), is in `bedrax.numpy_backend.rules.linalg`.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike
from bedrax.lax import matrices
from bedrax.lax.primitives import conversions, elementwise, shaping

pure_shapes.add(__name__)

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "geqp3",
    "geqp3_p",
    "geqrf",
    "geqrf_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]

_INT = np.dtype(np.int32)


class SvdAlgorithm(enum.Enum):
    """Algorithm for singular values; a platform that lacks it raises an error.

    Examples:

      >>> u, s, vt = lax.linalg.svd(jnp.diag(jnp.array([3., 4.])), algorithm=lax.linalg.SvdAlgorithm.QR)
      >>> s
      Array([4., 3.], dtype=float32)
    """

    # The public members and their values.
    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class EighImplementation(enum.Enum):
    """Algorithm for eigenvalues of Hermitian matrices: QR on CPU and GPU, Jacobi on GPU, QDWH on TPU.

    Examples:

      >>> x = jnp.array([[2., 1.], [1., 2.]])
      >>> vectors, values = lax.linalg.eigh(x, implementation=lax.linalg.EighImplementation.QR)
      >>> values.round(3)
      Array([1.       , 3.0000002], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """The library that computes eigenvalues of general matrices.

    Examples:

      >>> lax.linalg.EigImplementation.LAPACK.name
      'LAPACK'
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


cholesky_p: Final = Primitive("cholesky", "linalg")
cholesky_update_p: Final = Primitive("cholesky_update", "linalg")
lu_p: Final = Primitive("lu", "linalg", multiple_results=True)
lu_pivots_to_permutation_p: Final = Primitive("lu_pivots_to_permutation", "linalg")
qr_p: Final = Primitive("qr", "linalg", multiple_results=True)
geqrf_p: Final = Primitive("geqrf", "linalg", multiple_results=True)
geqp3_p: Final = Primitive("geqp3", "linalg", multiple_results=True)
householder_product_p: Final = Primitive("householder_product", "linalg")
ormqr_p: Final = Primitive("ormqr", "linalg")
eig_p: Final = Primitive("eig", "linalg", multiple_results=True)
eigh_p: Final = Primitive("eigh", "linalg", multiple_results=True)
svd_p: Final = Primitive("svd", "linalg", multiple_results=True)
schur_p: Final = Primitive("schur", "linalg", multiple_results=True)
hessenberg_p: Final = Primitive("hessenberg", "linalg", multiple_results=True)
tridiagonal_p: Final = Primitive("tridiagonal", "linalg", multiple_results=True)
tridiagonal_solve_p: Final = Primitive("tridiagonal_solve", "linalg")
triangular_solve_p: Final = Primitive("triangular_solve", "linalg")
symmetric_product_p: Final = Primitive("symmetric_product", "linalg")


# ---- common parts of shape rules and functions ----------------------------------------------------------------


def _check(name: str, *avals: ShapedArray, ranks: tuple[int, ...]) -> tuple:
    """Operands of inexact dtype with the given least ranks and equal batch axes; returns the batch shape."""
    for i, (aval, rank) in enumerate(zip(avals, ranks, strict=True)):
        if not dtypes.is_inexact(aval.dtype):
            raise TypeError(f"{name} takes floats or complex numbers, got {aval.dtype} at position {i}; convert it")
        if aval.ndim < rank:
            raise TypeError(f"{name} takes rank {rank} or more, got shape {aval.shape} at position {i}")
    batches = [aval.shape[: aval.ndim - rank] for aval, rank in zip(avals, ranks, strict=True)]
    if len({len(b) for b in batches}) > 1:
        raise TypeError(f"{name}: inputs have equally many batch axes, got {[len(b) for b in batches]}")
    if not all(dims.definitely_equal_shape(b, batches[0]) for b in batches[1:]):
        raise TypeError(f"{name}: inputs have equal batch axes, got {batches}")
    if len(avals) > 1:
        shaping.check_same_dtypes(name, *avals)
    return batches[0]


def _matrix(name: str, a: ShapedArray) -> tuple:
    """(batch shape, rows, columns) of matrices."""
    batch = _check(name, a, ranks=(2,))
    return batch, *a.shape[-2:]


def _square(name: str, a: ShapedArray) -> tuple:
    """(batch shape, n) of square matrices."""
    batch, m, n = _matrix(name, a)
    if not dims.definitely_equal(m, n):
        raise ValueError(coded("BX-SQUARE", f"{name} takes square matrices, got shape {(m, n)}"))
    return batch, n


def _array(shape: tuple, dtype) -> ShapedArray:
    return ShapedArray(tuple(shape), np.dtype(dtype))


def _inexact(x) -> Any:
    """An operand; integers become floats."""
    dtype = aval_of(x).dtype
    return x if dtypes.is_inexact(dtype) else conversions.convert_element_type(x, dtypes.to_inexact_dtype(dtype))


def _subset(name: str, subset_by_index, count) -> tuple[int, int] | None:
    """A range of indices that lies within `count`; None for all."""
    if subset_by_index is None:
        return None
    start, end = map(operator.index, subset_by_index)
    if not 0 <= start <= end or (dims.is_constant_dim(count) and end > count):
        raise ValueError(f"{name}: subset_by_index={subset_by_index} is not a range within [0, {count}]")
    return (start, end)


# ---- Cholesky ----------------------------------------------------------------------------------------------


@cholesky_p.abstract
def _cholesky_shape(x):
    _square("cholesky", x)
    return x


@one_program(static=("symmetrize_input",))
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with ``x = L @ L^H``, of positive definite matrices.

    Args:
      x: Hermitian matrices of shape ``[..., n, n]``.
      symmetrize_input: decompose ``(x + x^H) / 2``; otherwise only the lower triangle is read.

    Returns:
      An array like `x`, zero above the diagonal; NaN on and below it where a matrix is not positive definite.

    Examples:

      >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
    """
    x = _inexact(x)
    _square("cholesky", aval_of(x))
    return cholesky_p.bind(matrices.symmetrized(x) if symmetrize_input else x)


@cholesky_update_p.abstract
def _cholesky_update_shape(r, w):
    _check("cholesky_update", r, w, ranks=(2, 1))
    m, n = r.shape[-2:]
    if not (dims.definitely_equal(m, n) and dims.definitely_equal(n, w.shape[-1])):
        raise ValueError(f"cholesky_update takes a factor [n, n] and a vector [n], got shapes {r.shape} and {w.shape}")
    if dtypes.is_complex(r.dtype):
        raise TypeError(f"cholesky_update takes real matrices, got dtype {r.dtype}")
    return r


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular R' with ``R'^T R' = R^T R + w w^T``, in O(n^2).

    Args:
      r_matrix: R, real and upper triangular, of shape ``[..., n, n]``.
      w_vector: w, of shape ``[..., n]``.

    Examples:

      >>> r = jnp.array([[2., 0.], [0., 2.]])
      >>> w = jnp.array([1., 0.])
      >>> s = lax.linalg.cholesky_update(r, w)
      >>> jnp.allclose(s.T @ s, r.T @ r + jnp.outer(w, w))
      Array(True, dtype=bool)
    """
    return cholesky_update_p.bind(_inexact(r_matrix), _inexact(w_vector))


# ---- LU ----------------------------------------------------------------------------------------------------


@lu_p.abstract
def _lu_shape(x):
    batch, m, n = _matrix("lu", x)
    return [x, _array((*batch, dims.min_dim(m, n)), _INT), _array((*batch, m), _INT)]


def lu(x: ArrayLike) -> list[Array]:
    """LU decomposition with partial pivoting: ``x[permutation] = L @ U``.

    Args:
      x: matrices of shape ``[..., m, n]``.

    Returns:
      ``[lu, pivots, permutation]``. ``lu``, like `x`, holds U on and above its diagonal and below it L, which has
      a unit diagonal. ``pivots``, int32 of shape ``[..., min(m, n)]``: row i was exchanged with row
      ``pivots[i]``. ``permutation``, int32 of shape ``[..., m]``: all these exchanges together.

    Examples:

      >>> x = jnp.array([[1., 2.], [4., 2.]])
      >>> packed, pivots, permutation = lax.linalg.lu(x)
      >>> packed
      Array([[4.  , 2.  ],
             [0.25, 1.5 ]], dtype=float32)
      >>> permutation
      Array([1, 0], dtype=int32)
    """
    return lu_p.bind(_inexact(x))


@lu_pivots_to_permutation_p.abstract
def _permutation_shape(pivots, *, permutation_size):
    if pivots.ndim < 1 or pivots.dtype != _INT:
        raise ValueError(f"lu_pivots_to_permutation takes int32 pivots of shape [..., k], got {pivots.str_short()}")
    if not dims.at_least(permutation_size, pivots.shape[-1]):
        raise ValueError(f"lu_pivots_to_permutation: {permutation_size=} is less than {pivots.shape[-1]} pivots")
    return _array((*pivots.shape[:-1], permutation_size), _INT)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that equals a sequence of row exchanges.

    Args:
      pivots: int32 of shape ``[..., k]``: exchange row i with row ``pivots[i]``, for i from 0 on.
      permutation_size: number of rows, at least k.

    Returns:
      An int32 array of shape ``[..., permutation_size]``.

    Examples:

      >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2, 2], jnp.int32), 3)
      Array([2, 0, 1], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=permutation_size)


# ---- QR ----------------------------------------------------------------------------------------------------


@geqrf_p.abstract
def _geqrf_shape(a):
    batch, m, n = _matrix("geqrf", a)
    return [a, _array((*batch, dims.min_dim(m, n)), a.dtype)]


def geqrf(a: ArrayLike) -> list[Array]:
    """QR decomposition in packed form: R on and above the diagonal, Householder vectors below it.

    Args:
      a: matrices of shape ``[..., m, n]``.

    Returns:
      ``[packed, taus]``: Q is the product of the reflectors ``1 - taus[i] v_i v_i^H`` (see `householder_product`).
    """
    return geqrf_p.bind(_inexact(a))


@geqp3_p.abstract
def _geqp3_shape(a, jpvt):
    batch, m, n = _matrix("geqp3", a)
    if jpvt.dtype != _INT or not dims.definitely_equal_shape(jpvt.shape, (*batch, n)):
        raise ValueError(f"geqp3 takes an int32 array of shape {(*batch, n)} as jpvt, got {jpvt.str_short()}")
    return [a, jpvt, _array((*batch, dims.min_dim(m, n)), a.dtype)]


def geqp3(a: ArrayLike, jpvt: ArrayLike) -> list[Array]:
    """QR decomposition with column pivoting, in packed form.

    Args:
      a: matrices of shape ``[..., m, n]``.
      jpvt: int32 of shape ``[..., n]``; columns where it is not zero are moved to the front and stay there.

    Returns:
      ``[packed, jpvt, taus]``; column ``jpvt[i] - 1`` of `a` has become column i.
    """
    return geqp3_p.bind(_inexact(a), jpvt)


@householder_product_p.abstract
def _householder_product_shape(a, taus):
    _check("householder_product", a, taus, ranks=(2, 1))
    m, n = a.shape[-2:]
    if not dims.at_least(m, n):
        raise ValueError(f"householder_product takes matrices [m, n] with m >= n, got shape {a.shape}")
    if not dims.at_least(dims.min_dim(m, n), taus.shape[-1]):
        raise ValueError(f"householder_product: {taus.shape[-1]} factors for shape {a.shape}; at most one per column")
    return a


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first n columns of the product of the reflectors that `geqrf` returns.

    Args:
      a: of shape ``[..., m, n]``, m >= n; column i below the diagonal holds the vector of reflector i;
        its element i is one.
      taus: of shape ``[..., k]``, k <= n: the factors of the reflectors.

    Returns:
      Matrices with orthonormal columns, like `a`.

    Examples:

      >>> x = jnp.array([[3., 1.], [4., 2.]])
      >>> q = lax.linalg.householder_product(jnp.array([[1., 0.], [0., 1.]]), jnp.array([0., 2.]))
      >>> q
      Array([[ 1.,  0.],
             [-0., -1.]], dtype=float32)
    """
    return householder_product_p.bind(_inexact(a), _inexact(taus))


@ormqr_p.abstract
def _ormqr_shape(a, taus, c, *, left, transpose):
    _check("ormqr", a, taus, c, ranks=(2, 1, 2))
    m, n = a.shape[-2:]
    if not dims.at_least(dims.min_dim(m, n), taus.shape[-1]):
        raise ValueError(f"ormqr: {taus.shape[-1]} factors taus do not fit a of shape {(m, n)}")
    rows, columns = c.shape[-2:]
    if not dims.definitely_equal(rows if left else columns, m):
        raise ValueError(f"ormqr: the {'rows' if left else 'columns'} of c, {(rows, columns)}, do not fit a, {(m, n)}")
    return c


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """``Q @ c`` or ``c @ Q`` where Q, of shape ``[..., m, m]``, is the product of Householder reflectors.

    Args:
      a, taus: the results of `geqrf`, of shapes ``[..., m, n]`` and ``[..., k]``.
      c: matrices to multiply.
      left: multiply from the left.
      transpose: use ``Q^H`` for Q.

    Examples:

      >>> a, taus = jnp.array([[1., 0.], [0., 1.]]), jnp.array([0., 2.])
      >>> lax.linalg.ormqr(a, taus, jnp.array([[1., 2.], [3., 4.]]))
      Array([[ 1.,  2.],
             [-3., -4.]], dtype=float32)
    """
    return ormqr_p.bind(_inexact(a), _inexact(taus), _inexact(c), left=bool(left), transpose=bool(transpose))


@qr_p.abstract
def _qr_shape(x, *, pivoting, full_matrices, use_magma):
    batch, m, n = _matrix("qr", x)
    k = m if full_matrices else dims.min_dim(m, n)
    out = [_array((*batch, m, k), x.dtype), _array((*batch, k, n), x.dtype)]
    return [*out, _array((*batch, n), _INT)] if pivoting else out


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, ...]:
    """QR decomposition: unitary Q and upper triangular R with ``x = Q @ R``.

    Args:
      x: matrices of shape ``[..., m, n]``.
      pivoting: reorder columns so that the diagonal of R does not increase in magnitude: ``x[:, p] = Q @ R``.
      full_matrices: Q has shape ``[..., m, m]``; otherwise ``[..., m, min(m, n)]``.
      use_magma: for a pivoted decomposition on GPU: whether MAGMA, or LAPACK on the host, computes it.

    Returns:
      ``(q, r)``, or ``(q, r, p)`` with the int32 `p` of shape ``[..., n]``.

    Examples:

      >>> x = jnp.array([[3., 1.], [4., 2.]])
      >>> q, r = lax.linalg.qr(x)
      >>> jnp.allclose(q @ r, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    return tuple(
        qr_p.bind(_inexact(x), pivoting=bool(pivoting), full_matrices=bool(full_matrices), use_magma=use_magma)
    )


# ---- eigenvalues -------------------------------------------------------------------------------------------


@eig_p.abstract
def _eig_shape(
    x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs=False, implementation=None
):
    batch, n = _square("eig", x)
    dtype = dtypes.to_complex_dtype(x.dtype)
    vectors = _array((*batch, n, n), dtype)
    return [_array((*batch, n), dtype)] + [vectors] * (compute_left_eigenvectors + compute_right_eigenvectors)


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues and eigenvectors of general square matrices.

    Args:
      x: matrices of shape ``[..., n, n]``.
      compute_left_eigenvectors, compute_right_eigenvectors: which vectors to return.
      enable_eigvec_derivs: allow differentiation of the eigenvectors. They have unit length and a real
        component of largest magnitude; the derivative under this normalization exists where all eigenvalues are
        distinct and one component of each vector is larger than the others.
      implementation: on GPU: the library to use.
      use_magma: an older form of `implementation`.

    Returns:
      A list ``[w, vl, vr]``, all complex, without the vectors not requested. ``w`` has shape ``[..., n]``; the
      columns of ``vl`` and ``vr`` satisfy ``vl^H x = w vl^H`` and ``x vr = w vr``. NaN where it fails.

    Examples:

      >>> x = jnp.array([[2., 1.], [0., 3.]])
      >>> values, vectors = lax.linalg.eig(x, compute_left_eigenvectors=False)
      >>> values
      Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    if use_magma is not None:
        if implementation is not None:
            raise ValueError(
                f"eig: only one of implementation and use_magma may be given, got {implementation=} and {use_magma=}"
            )
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return eig_p.bind(
        _inexact(x),
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=None if implementation is None else EigImplementation(implementation),
    )


@eigh_p.abstract
def _eigh_shape(x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    batch, n = _square("eigh", x)
    d = n if subset_by_index is None else subset_by_index[1] - subset_by_index[0]
    return [_array((*batch, n, d), x.dtype), _array((*batch, d), dtypes.to_real_dtype(x.dtype))]


@one_program(static=("lower", "symmetrize_input", "sort_eigenvalues", "subset_by_index", "implementation"))
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, ...]:
    """Eigenvalues and orthonormal eigenvectors of Hermitian matrices.

    Args:
      x: matrices of shape ``[..., n, n]``.
      lower: without `symmetrize_input`, the triangle that is read.
      symmetrize_input: decompose ``(x + x^H) / 2``.
      sort_eigenvalues: in ascending order; otherwise in the order in which the implementation finds them.
      subset_by_index: (start, end) of the eigenvalues wanted.
      implementation: the algorithm; raises an error on a platform without it.

    Returns:
      ``(v, w)``: vectors in the columns of ``v``, and real eigenvalues ``w`` of shape ``[..., n]``; with
      ``end - start`` for n where a subset is wanted. NaN where it fails.

    Examples:

      >>> vectors, values = lax.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]))
      >>> values.round(3)
      Array([1.       , 3.0000002], dtype=float32)
    """
    x = _inexact(x)
    _, n = _square("eigh", aval_of(x))
    subset = _subset("eigh", subset_by_index, n)
    if symmetrize_input:
        x = matrices.symmetrized(x)
    v, w = eigh_p.bind(
        x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=subset,
        algorithm=None if implementation is None else EighImplementation(implementation),
    )
    return v, w


@svd_p.abstract
def _svd_shape(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    batch, m, n = _matrix("svd", x)
    k = dims.min_dim(m, n) if subset_by_index is None else subset_by_index[1] - subset_by_index[0]
    s = _array((*batch, k), dtypes.to_real_dtype(x.dtype))
    if not compute_uv:
        return [s]
    rows, columns = (m, n) if full_matrices else (k, k)
    return [s, _array((*batch, m, rows), x.dtype), _array((*batch, columns, n), x.dtype)]


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, ...]:
    """Singular value decomposition: ``x = u @ diag(s) @ vh``.

    Args:
      x: matrices of shape ``[..., m, n]``.
      full_matrices: ``u`` and ``vh`` are square; otherwise their inner size is min(m, n).
      compute_uv: False returns ``s`` alone.
      subset_by_index: (start, end) of the singular values wanted, in descending order.
      algorithm: the algorithm; raises an error on a platform without it.

    Returns:
      ``(u, s, vh)``, or ``s``: real, of shape ``[..., min(m, n)]``, descending. NaN where it fails.

    Raises:
      ValueError: a subset together with full matrices.

    Examples:

      >>> u, s, vt = lax.linalg.svd(jnp.diag(jnp.array([3., 4.])))
      >>> s
      Array([4., 3.], dtype=float32)
    """
    x = _inexact(x)
    _, m, n = _matrix("svd", aval_of(x))
    subset = _subset("svd", subset_by_index, dims.min_dim(m, n))
    if subset is not None and full_matrices and compute_uv:
        raise ValueError("svd: subset_by_index takes some vectors, full_matrices=True all; give one of the two")
    out = svd_p.bind(
        x,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        subset_by_index=subset,
        algorithm=None if algorithm is None else SvdAlgorithm(algorithm),
    )
    if not compute_uv:
        return out[0]
    s, u, vh = out
    return u, s, vh


@schur_p.abstract
def _schur_shape(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    _square("schur", x)
    return [x] * (1 + compute_schur_vectors)


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Schur decomposition: ``x = Q @ U @ Q^H`` with unitary Q.

    U is upper triangular for complex `x`; for real `x` it may have blocks of two on its diagonal, which belong to
    pairs of conjugate eigenvalues and have equal diagonal elements.

    Args:
      x: matrices of shape ``[..., n, n]``.
      compute_schur_vectors: return Q as well.
      sort_eig_vals, select_callable: sorting of the eigenvalues is not implemented.

    Returns:
      A list ``[U, Q]``, or ``[U]``.

    Examples:

      >>> x = jnp.array([[2., 1.], [0., 3.]])
      >>> t, q = lax.linalg.schur(x)
      >>> jnp.allclose(q @ t @ q.T, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("schur: eigenvalues cannot be sorted; leave sort_eig_vals and select_callable out")
    return schur_p.bind(
        _inexact(x), compute_schur_vectors=bool(compute_schur_vectors), sort_eig_vals=False, select_callable=None
    )


@hessenberg_p.abstract
def _hessenberg_shape(a):
    batch, n = _square("hessenberg", a)
    return [a, _array((*batch, dims.max_dim(n - 1, 0)), a.dtype)]


def hessenberg(a: ArrayLike) -> tuple[Array, ...]:
    """Reduction of square matrices to upper Hessenberg form by unitary similarity.

    Args:
      a: matrices of shape ``[..., n, n]``.

    Returns:
      ``(packed, taus)``: the Hessenberg matrix on, above and one below the diagonal; below, in column i, the
      vector of reflector i (its element i + 1 is one), with the factors ``taus`` of shape ``[..., n - 1]``.

    Examples:

      >>> h, taus = lax.linalg.hessenberg(jnp.array([[1., 2., 3.], [4., 5., 6.], [7., 8., 10.]]))
      >>> h.shape, taus.shape
      ((3, 3), (2,))
    """
    return tuple(hessenberg_p.bind(_inexact(a)))


@tridiagonal_p.abstract
def _tridiagonal_shape(a, *, lower):
    batch, n = _square("tridiagonal", a)
    real = dtypes.to_real_dtype(a.dtype)
    k = dims.max_dim(n - 1, 0)
    return [a, _array((*batch, n), real), _array((*batch, k), real), _array((*batch, k), a.dtype)]


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, ...]:
    """Reduction of Hermitian matrices to real tridiagonal form by unitary similarity.

    Args:
      a: matrices of shape ``[..., n, n]``.
      lower: the triangle that is read, and written.

    Returns:
      ``(packed, d, e, taus)``: the diagonal ``d`` and the adjacent diagonal ``e``, which also stand in
      ``packed``; the rest of its triangle holds the vectors of the reflectors with factors ``taus``.

    Examples:

      >>> x = jnp.array([[2., 1., 0.], [1., 2., 1.], [0., 1., 2.]])
      >>> packed, diagonal, off_diagonal, taus = lax.linalg.tridiagonal(x)
      >>> diagonal
      Array([2., 2., 2.], dtype=float32)
    """
    return tuple(tridiagonal_p.bind(_inexact(a), lower=bool(lower)))


# ---- systems of equations and products --------------------------------------------------------------------


@tridiagonal_solve_p.abstract
def _tridiagonal_solve_shape(dl, d, du, b, *, perturb_singular):
    _check("tridiagonal_solve", dl, d, du, b, ranks=(1, 1, 1, 2))
    if not all(dims.definitely_equal(v.shape[-1], b.shape[-2]) for v in (dl, d, du)):
        raise TypeError(f"tridiagonal_solve: diagonals {dl.shape}, {d.shape}, {du.shape} do not fit b, {b.shape}")
    return b


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """The x with ``A @ x = b`` for tridiagonal A, by elimination with partial pivoting.

    Args:
      dl: of shape ``[..., m]``: ``A[i, i-1]``; its first element is not used.
      d: of shape ``[..., m]``: ``A[i, i]``.
      du: of shape ``[..., m]``: ``A[i, i+1]``; its last element is not used.
      b: of shape ``[..., m, n]``.
      perturb_singular: replace pivots below ``eps * max|U|`` by this bound, so that singular systems have finite
        solutions, as inverse iteration needs them.

    Examples:

      >>> lower, diagonal, upper = jnp.array([0., 1., 1.]), jnp.full(3, 2.), jnp.array([1., 1., 0.])
      >>> lax.linalg.tridiagonal_solve(lower, diagonal, upper, jnp.array([[3.], [4.], [3.]])).round(3)
      Array([[1.],
             [1.],
             [1.]], dtype=float32)
    """
    return tridiagonal_solve_p.bind(
        _inexact(dl), _inexact(d), _inexact(du), _inexact(b), perturb_singular=bool(perturb_singular)
    )


@triangular_solve_p.abstract
def _triangular_solve_shape(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    _check("triangular_solve", a, b, ranks=(2, 2))
    m, n = a.shape[-2:]
    if not dims.definitely_equal(m, n):
        raise ValueError(coded("BX-SQUARE", f"triangular_solve takes square matrices first, got shape {(m, n)}"))
    if not dims.definitely_equal(n, b.shape[-2 if left_side else -1]):
        raise ValueError(f"triangular_solve: a of shape {(m, n)} does not fit b of shape {b.shape[-2:]}")
    return b


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The x with ``op(a) @ x = b`` (`left_side`) or ``x @ op(a) = b``, for triangular a.

    Args:
      a: of shape ``[..., m, m]``; only one triangle is read.
      b: of shape ``[..., m, n]`` (`left_side`) or ``[..., n, m]``; or a vector (or vectors) ``[..., m]``, of rank
        one less than `a`.
      left_side: which of the equations to solve.
      lower: which triangle to use.
      transpose_a, conjugate_a: the parts of ``op``.
      unit_diagonal: take the diagonal as ones, and do not read it.

    Returns:
      An array like `b`; infinite or NaN where `a` is singular.

    Examples:

      >>> a = jnp.array([[2., 0.], [1., 1.]])
      >>> lax.linalg.triangular_solve(a, jnp.array([[4.], [5.]]), left_side=True, lower=True)
      Array([[2.],
             [3.]], dtype=float32)
    """
    a, b = _inexact(a), _inexact(b)
    a_aval, b_aval = aval_of(a), aval_of(b)
    vector = b_aval.ndim >= 1 and b_aval.ndim == a_aval.ndim - 1
    if vector:
        b = shaping.expand_dims(b, (b_aval.ndim if left_side else b_aval.ndim - 1,))
    conjugate_a = bool(conjugate_a) and dtypes.is_complex(a_aval.dtype)
    out = triangular_solve_p.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=conjugate_a,
        unit_diagonal=bool(unit_diagonal),
    )
    return shaping.squeeze(out, (b_aval.ndim if left_side else b_aval.ndim - 1,)) if vector else out


@symmetric_product_p.abstract
def _symmetric_product_shape(a, c, *, alpha, beta):
    _check("symmetric_product", a, c, ranks=(2, 2))
    m, n = a.shape[-2:]
    if not dims.definitely_equal_shape(c.shape[-2:], (m, m)):
        raise ValueError(f"symmetric_product: a of shape {(m, n)} needs c of shape {(m, m)}, got {c.shape[-2:]}")
    if dtypes.is_complex(a.dtype):
        raise TypeError(f"symmetric_product does not accept dtype {a.dtype}: it takes real matrices.")
    return c


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """``alpha * a @ a^T + beta * c`` for real matrices. Only the lower triangle is defined on every platform.

    Args:
      a_matrix: of shape ``[..., m, n]``.
      c_matrix: symmetric, of shape ``[..., m, m]``.
      alpha, beta: Python numbers.
      symmetrize_output: replace the upper triangle by the transpose of the lower one.

    Examples:

      >>> lax.linalg.symmetric_product(jnp.array([[1., 2.]]), jnp.zeros((1, 1)), alpha=2., symmetrize_output=True)
      Array([[10.]], dtype=float32)
    """
    out = symmetric_product_p.bind(_inexact(a_matrix), _inexact(c_matrix), alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return out
    return elementwise.add(
        matrices.triangle(out, lower=True), matrices.transposed(matrices.triangle(out, lower=True, offset=-1))
    )
