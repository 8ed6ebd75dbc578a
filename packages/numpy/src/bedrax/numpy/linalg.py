"""`jax.numpy.linalg`: decompositions, solutions, determinants and norms.

Decompositions are primitives (`bedrax.lax.primitives.linalg`); functions built from them are differentiated through them,
except where this would be less accurate, or would fail although the derivative exists: `det`, `slogdet` and `pinv`.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.choices import one_of
from bedrax.lax.matrices import adjoint
from bedrax.lax.primitives import linalg as factor
from bedrax.numpy import products
from bedrax.numpy.arguments import array, axis_index, inexact
from bedrax.numpy.norms import matrix_norm, norm, vector_norm
from bedrax.numpy.products import matmul, multi_dot, vecdot

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Array
    S: Array
    Vh: Array


def _matrices(name: str, *xs: ArrayLike, square: bool = False) -> list[Array]:
    """Arguments as floats of one dtype, the first of shape [..., m, n]."""
    out = inexact(f"linalg.{name}", *xs)
    shape = out[0].shape
    if len(shape) < 2 or (square and not dims.definitely_equal(shape[-1], shape[-2])):
        kind = "square matrices [..., n, n]" if square else "matrices [..., m, n]"
        raise ValueError(coded("BX-SQUARE", f"jnp.linalg.{name} takes {kind}, got shape {shape}"))
    return out


def _eps(dtype: np.dtype) -> float:
    return float(dtypes.finfo(dtype).eps)


# Decompositions


@one_program(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular L with ``a = L @ L^H`` of a positive definite matrix; NaN where it is not.

    Args:
      a: array of shape ``[..., n, n]``.
      upper: return ``L^H``.
      symmetrize_input: use ``(a + a^H) / 2``, which also makes derivatives symmetric; otherwise, only the
        triangle of the result.

    Examples:

      >>> x = jnp.array([[4., 2.], [2., 5.]])
      >>> jnp.linalg.cholesky(x)
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
      >>> jnp.linalg.cholesky(x, upper=True)
      Array([[2., 1.],
             [0., 2.]], dtype=float32)
    """
    (a,) = _matrices("cholesky", a, square=True)
    if upper and not symmetrize_input:
        a = adjoint(a)
    out = factor.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(out) if upper else out


@one_program(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Array:
    """Orthonormal Q and upper triangular R with ``a = Q @ R``.

    Args:
      a: array of shape ``[..., m, n]``.
      mode: ``"reduced"``: Q has min(m, n) columns; ``"complete"``: m; ``"r"``: return only R; ``"raw"``: return
        the transposed packed form of LAPACK and the factors of its reflectors.

    Raises:
      ValueError: another mode.

    Examples:

      >>> x = jnp.array([[3., 1.], [4., 2.]])
      >>> q, r = jnp.linalg.qr(x)
      >>> jnp.allclose(q @ r, x, atol=1e-5)
      Array(True, dtype=bool)
      >>> r.shape
      (2, 2)
    """
    one_of("qr", "mode", mode, ("reduced", "complete", "full", "r", "raw"))
    (a,) = _matrices("qr", a)
    if mode == "raw":
        packed, taus = factor.geqrf(a)
        return QRResult(packed.mT, taus)
    q, r = factor.qr(a, full_matrices=mode in ("complete", "full"))
    return r if mode == "r" else QRResult(q, r)


@one_program(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array:
    """Singular value decomposition: ``a = U @ diag(S) @ Vh``.

    Args:
      a: array of shape ``[..., m, n]``.
      full_matrices: U and Vh are square; otherwise of the inner size min(m, n).
      compute_uv: False returns S alone.
      hermitian: `a` is Hermitian, which allows a faster algorithm.
      subset_by_index: (start, end) of the singular values wanted, in descending order.

    Returns:
      ``SVDResult(U, S, Vh)`` or S, of shape ``[..., min(m, n)]``, descending.

    Examples:

      >>> x = jnp.array([[3., 0.], [0., 4.], [0., 0.]])
      >>> u, s, vh = jnp.linalg.svd(x, full_matrices=False)
      >>> s
      Array([4., 3.], dtype=float32)
      >>> jnp.allclose((u * s) @ vh, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    (a,) = _matrices("svd", a, square=hermitian)
    if not hermitian:
        if not compute_uv:
            return factor.svd(a, full_matrices=full_matrices, compute_uv=False, subset_by_index=subset_by_index)
        u, s, vh = factor.svd(a, full_matrices=full_matrices, compute_uv=True, subset_by_index=subset_by_index)
        return SVDResult(u, s, vh)
    if subset_by_index is not None:
        raise NotImplementedError(
            f"jnp.linalg.svd: subset_by_index={subset_by_index!r} is not supported with hermitian=True; leave one out"
        )
    w, v = eigh(a)
    order = jnp.argsort(-abs(w), axis=-1)
    w = jnp.take_along_axis(w, order, axis=-1)
    s = abs(w)
    if not compute_uv:
        return s
    v = jnp.take_along_axis(v, order[..., None, :], axis=-1)
    sign = jnp.where(w < 0, -1, 1).astype(w.dtype)
    return SVDResult(v * sign[..., None, :], s, adjoint(v))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices, descending.

    Examples:

      >>> jnp.linalg.svdvals(jnp.array([[3., 0.], [0., 4.]]))
      Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and (right) eigenvectors, the columns of the second result; both are complex.

    Only the CPU implements it.

    Examples:

      >>> x = jnp.array([[0., -1.], [1., 0.]])
      >>> values, vectors = jnp.linalg.eig(x)
      >>> jnp.allclose(x @ vectors, vectors * values, atol=1e-6)
      Array(True, dtype=bool)
    """
    (a,) = _matrices("eig", a, square=True)
    w, v = factor.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues, complex, in no particular order. Only the CPU implements it.

    Examples:

      >>> jnp.linalg.eigvals(jnp.array([[2., 1.], [0., 3.]]))
      Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    (a,) = _matrices("eigvals", a, square=True)
    return factor.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@one_program(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices.

    Args:
      a: array of shape ``[..., n, n]``.
      UPLO: ``"L"`` (default) or ``"U"``: the triangle to use.
      symmetrize_input: use ``(a + a^H) / 2`` instead of one triangle.

    Raises:
      ValueError: another UPLO.

    Examples:

      >>> x = jnp.array([[2., 1.], [1., 2.]])
      >>> values, vectors = jnp.linalg.eigh(x)
      >>> values.round(3)
      Array([1.       , 3.0000002], dtype=float32)
      >>> jnp.allclose(vectors @ jnp.diag(values) @ vectors.T, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    one_of("eigh", "UPLO", UPLO, (None, "L", "U"))
    (a,) = _matrices("eigh", a, square=True)
    v, w = factor.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@one_program(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending.

    Args:
      a: array of shape ``[..., n, n]``.
      UPLO: ``"L"`` (default) or ``"U"``: the triangle to use.
      symmetrize_input: use ``(a + a^H) / 2`` instead of one triangle.

    Returns:
      A real array of shape ``[..., n]``.

    Raises:
      ValueError: another UPLO.

    Examples:

      >>> jnp.linalg.eigvalsh(jnp.array([[2., 1.], [1., 2.]])).round(3)
      Array([1.       , 3.0000002], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


# Solutions


def _lu_solve(lu: Array, permutation: Array, b: Array) -> Array:
    """The x with ``a @ x = b`` (columns) from the decomposition ``a[permutation] = L @ U``."""
    b = jnp.take_along_axis(b, permutation[..., :, None], axis=-2)
    y = factor.triangular_solve(lu, b, left_side=True, lower=True, unit_diagonal=True)
    return factor.triangular_solve(lu, y, left_side=True)


def _lu_solve_transposed(lu: Array, permutation: Array, b: Array) -> Array:
    """The x with ``a.T @ x = b``, from the same decomposition."""
    y = factor.triangular_solve(lu, b, left_side=True, transpose_a=True)
    x = factor.triangular_solve(lu, y, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)
    return jnp.take_along_axis(x, jnp.argsort(permutation, axis=-1)[..., :, None], axis=-2)


def _solution(a: Array, b: Array) -> Array:
    """The x with ``a @ x = b`` (columns). Its derivatives are solutions from the same decomposition of `a`."""
    from bedrax.autodiff import custom_linear_solve

    lu, _, permutation = factor.lu(lax.stop_gradient(a))
    return custom_linear_solve(
        lambda x: matmul(a, x, precision="highest"),
        b,
        lambda _, y: _lu_solve(lu, permutation, y),
        lambda _, y: _lu_solve_transposed(lu, permutation, y),
    )


def _batched(a: Array, b: Array) -> tuple[Array, Array]:
    """Matrices with equal batch dimensions."""
    batch = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    fit = lambda v: v if v.shape[:-2] == batch else jnp.broadcast_to(v, (*batch, *v.shape[-2:]))
    return fit(a), fit(b)


@one_program
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with ``a @ x = b``.

    Args:
      a: array of shape ``[..., n, n]``.
      b: array of shape ``[n]`` or ``[..., n, m]``.

    Returns:
      An array of shape ``[..., n]`` for `b` of rank 1, else ``[..., n, m]``.

    Examples:

      >>> a = jnp.array([[2., 0.], [1., 1.]])
      >>> jnp.linalg.solve(a, jnp.array([4., 5.]))
      Array([2., 3.], dtype=float32)
    """
    a, b = _matrices("solve", a, b, square=True)
    if not b.ndim:
        raise ValueError(f"jnp.linalg.solve: b must have rank 1 or more, got shape {b.shape}")
    vector = b.ndim == 1
    if vector:
        b = b[:, None]
    if not dims.definitely_equal(a.shape[-1], b.shape[-2]):
        given, wanted = (b.shape[:-1], "[n]") if vector else (b.shape, "[..., n, m]")
        raise ValueError(
            coded("BX-SOLVE", f"jnp.linalg.solve: shapes {a.shape} and {given} do not fit: [..., n, n] and {wanted}")
        )
    weak = aval_of(a).weak_type and aval_of(b).weak_type
    a, b = _batched(a, b)
    x = lax.convert_to(_solution(a, b), b.dtype, weak)
    return x[..., 0] if vector else x


@one_program
def inv(a: ArrayLike) -> Array:
    """The inverses of matrices of shape ``[..., n, n]``; not finite for singular matrices.

    Examples:

      >>> x = jnp.array([[2., 0.], [1., 1.]])
      >>> jnp.linalg.inv(x)
      Array([[ 0.5,  0. ],
             [-0.5,  1. ]], dtype=float32)
    """
    (a,) = _matrices("inv", a, square=True)
    return solve(a, jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape))


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False) -> tuple[Array, ...]:
    """Least squares: the x of least norm among those that minimize ``norm(a @ x - b)``.

    Args:
      a: array of shape ``[m, n]``.
      b: array of shape ``[m]`` or ``[m, k]``.
      rcond: singular values below this share of the greatest are taken as zero; default eps * max(m, n).
      numpy_resid: return residuals like NumPy: empty where the rank is below n or m <= n (needs a concrete rank).

    Returns:
      (x, sums of squared residuals of each column, rank of `a`, its singular values).

    Examples:

      >>> a = jnp.array([[1., 0.], [1., 1.], [1., 2.]])
      >>> b = jnp.array([1., 3., 5.])
      >>> solution, residuals, rank, singular_values = jnp.linalg.lstsq(a, b)
      >>> solution.round(3)
      Array([1., 2.], dtype=float32)
    """
    a, b = _matrices("lstsq", a, b)
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    m, n = a.shape
    if not dims.definitely_equal(m, b.shape[0]):
        raise ValueError(f"Leading dimensions of input arrays must match, got {a.shape} and {b.shape}")
    vector = b.ndim == 1
    if vector:
        b = b[:, None]
    real = dtypes.to_real_dtype(a.dtype)
    if m == 0 or n == 0:
        s = jnp.zeros((0,), real)
        x, rank = jnp.zeros((n, b.shape[1]), a.dtype), jnp.zeros((), np.int32)
    else:
        rcond = _eps(a.dtype) * dims.max_dim(m, n) if rcond is None else jnp.where(rcond < 0, _eps(a.dtype), rcond)
        u, s, vh = svd(a, full_matrices=False)
        kept = (s > 0) & (s >= jnp.asarray(rcond, real) * s[0])
        rank = jnp.sum(kept)
        inverse = jnp.where(kept, 1, 0).astype(real) / jnp.where(kept, s, jnp.ones((), real))
        x = matmul(
            adjoint(vh),
            inverse[:, None].astype(a.dtype) * matmul(adjoint(u), b, precision="highest"),
            precision="highest",
        )
    if numpy_resid and (int(rank) < n or m <= n):
        residuals = jnp.zeros((0,), real)
    else:
        difference = b - matmul(a, x, precision="highest")
        residuals = jnp.sum(jnp.real(difference * jnp.conj(difference)), axis=0)
    return (x[:, 0] if vector else x), residuals, rank, s


@one_program(static=("hermitian",), arrays=("rtol", "rcond"))
def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore-Penrose inverse.

    Args:
      a: array of shape ``[..., m, n]``.
      rtol: singular values up to this share of the greatest are taken as zero; default ``10 * max(m, n) * eps``.
      hermitian: `a` is Hermitian.
      rcond: the older name of `rtol`.

    Examples:

      >>> jnp.linalg.pinv(jnp.array([[2., 0.], [0., 0.]])).round(3)
      Array([[0.5, 0. ],
             [0. , 0. ]], dtype=float32)
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError(f"pinv: only one of rtol and rcond may be specified. got {rtol=} and {rcond=}")
        rtol = rcond
    (a,) = _matrices("pinv", a, square=hermitian)
    m, n = a.shape[-2:]
    if m == 0 or n == 0:
        return jnp.zeros((*a.shape[:-2], n, m), a.dtype)
    if rtol is None:
        rtol = 10.0 * dims.max_dim(m, n) * _eps(a.dtype)
    return _pseudoinverse()(a, jnp.asarray(rtol, dtypes.to_real_dtype(a.dtype)), hermitian)


@functools.cache
def _pseudoinverse():
    """`pinv`, with the derivative where the rank is locally constant (Golub & Pereyra 1973, eq. 4.12).

    Unlike the derivatives of the singular vectors, it exists also for equal singular values.
    """
    from bedrax.autodiff import custom_jvp

    def compute(a, rtol, hermitian):
        u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
        kept = s > rtol[..., None] * s[..., :1]
        inverse = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0).astype(a.dtype)
        return matmul(adjoint(vh), inverse[..., None] * adjoint(u), precision="highest")

    pseudoinverse = custom_jvp(compute, nondiff_argnums=(2,))

    @pseudoinverse.defjvp
    def _(hermitian, primals, tangents):
        (a, rtol), (da, _) = primals, tangents
        times = functools.partial(matmul, precision="highest")
        p = pseudoinverse(a, rtol, hermitian)
        da_h, p_h = adjoint(da), adjoint(p)
        row_part = times(times(p, p_h), da_h - times(da_h, times(a, p)))  # P P^H dA^H (1 - A P)
        column_part = times(da_h - times(times(p, a), da_h), times(p_h, p))  # (1 - P A) dA^H P^H P
        return p, row_part + column_part - times(times(p, da), p)

    return pseudoinverse


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of `a` as a linear map: ``tensordot(tensorinv(a, ind), a, ind)`` is the identity.

    Args:
      a: array. The product of its first `ind` lengths equals the product of the others.
      ind: the number of leading axes.

    Returns:
      An array of shape ``a.shape[ind:] + a.shape[:ind]``.

    Raises:
      ValueError: `ind` is not positive, or the sizes of the first `ind` axes and of the rest differ.

    Examples:

      >>> x = 2 * jnp.eye(4).reshape(2, 2, 4)
      >>> jnp.linalg.tensorinv(x, ind=2).shape
      (4, 2, 2)
    """
    a = array("linalg.tensorinv", a)
    ind = dims.integer(ind, "ind")
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(f"product of dimensions before and after ind must be equal; got {rows} and {columns}")
    return inv(a.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The x with ``tensordot(a, x, x.ndim) = b``.

    Args:
      a: array of shape ``b.shape + x.shape``.
      b: array.
      axes: axes of `a` to move to its end first.

    Examples:

      >>> a = 2 * jnp.eye(4).reshape(2, 2, 2, 2)
      >>> jnp.linalg.tensorsolve(a, jnp.array([[2., 4.], [6., 8.]]))
      Array([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    a, b = inexact("linalg.tensorsolve", a, b)
    if axes is not None:
        moved = [axis_index(d, a.ndim) for d in axes]
        a = jnp.transpose(a, [*[d for d in range(a.ndim) if d not in moved], *moved])
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        raise ValueError(f"tensorsolve: a has shape b.shape + x.shape of equal sizes, got {a.shape} and {b.shape}")
    return solve(a.reshape(b.size, -1), b.reshape(-1)).reshape(shape)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th power of square matrices, by squaring; of the inverse for negative n.

    Args:
      a: array of shape ``[..., n, n]``.
      n: the exponent, a known int. If it is negative, integers become floats.

    Returns:
      An array of the shape of `a`.

    Raises:
      TypeError: `n` is not an integer, or the matrices are not square.

    Examples:

      >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
      Array([[1, 5],
             [0, 1]], dtype=int32)
    """
    a = array("linalg.matrix_power", a)
    if a.ndim < 2 or not dims.definitely_equal(a.shape[-1], a.shape[-2]):
        raise TypeError(f"matrix_power requires a square matrix [..., n, n], got shape {a.shape}")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    if n < 0:
        a, n = inv(a), -n
    if not n:
        return jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    out = None
    while True:
        if n & 1:
            out = a if out is None else matmul(out, a, precision="highest")
        n >>= 1
        if not n:
            return out
        a = matmul(a, a, precision="highest")


# Determinants


def _for_decomposition(a: Array) -> Array:
    """Matrices in a dtype that decompositions take: floats of less than 32 bits become float32."""
    return a.astype(np.float32) if a.dtype.itemsize < 4 else a


def _lu_determinant(a: Array) -> tuple[Array, Array, Array]:
    """(diagonal of U, sign of the permutation, LU) of matrices."""
    lu, pivots, permutation = factor.lu(a)
    diagonal_ = jnp.diagonal(lu, axis1=-2, axis2=-1)
    swaps = jnp.sum(pivots != lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1), axis=-1)
    parity = jnp.where(swaps % 2 == 0, 1, -1).astype(a.dtype)
    return diagonal_, parity, (lu, permutation)


def _trace_of_solution(lu, tangent):
    """``trace(inv(a) @ tangent)``."""
    return jnp.trace(_lu_solve(*lu, tangent), axis1=-2, axis2=-1)


@functools.cache
def _determinant():
    """`det` for n > 3: its derivative is ``trace(adj(a) @ da)`` (Jacobi), which also exists for singular matrices."""
    from bedrax.autodiff import custom_jvp

    @custom_jvp
    def determinant(a):
        diagonal_, parity, _ = _lu_determinant(a)
        return parity * jnp.prod(diagonal_, axis=-1)

    @determinant.defjvp
    def _(primals, tangents):
        (a,), (t,) = primals, tangents
        diagonal_, parity, lu = _lu_determinant(a)
        value = parity * jnp.prod(diagonal_, axis=-1)
        singular = jnp.any(diagonal_ == 0, axis=-1)

        def by_adjugate(a, t):
            return jnp.where(
                singular, jnp.trace(matmul(_adjugate(a), t, precision="highest"), axis1=-2, axis2=-1), by_solution(a, t)
            )

        def by_solution(a, t):
            eye = jnp.eye(a.shape[-1], dtype=a.dtype)
            safe = jnp.where(singular[..., None, None], eye, lu[0]), lu[1]
            return value * _trace_of_solution(safe, t)

        return value, lax.cond(jnp.any(singular), by_adjugate, by_solution, a, t)

    return determinant


def _adjugate(a: Array) -> Array:
    """``det(a) * inv(a)``, also for singular matrices: from ``a = U S Vh``, ``det(U) det(Vh) V adj(S) U^H``."""
    u, s, vh = svd(a)
    ones = jnp.ones_like(s[..., :1])
    before = jnp.cumprod(jnp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    behind = jnp.flip(jnp.cumprod(jnp.concatenate([ones, jnp.flip(s, -1)[..., :-1]], axis=-1), axis=-1), -1)
    phase = _plain_determinant(u) * _plain_determinant(vh)
    inner = (before * behind).astype(a.dtype)
    return phase[..., None, None] * matmul(adjoint(vh), inner[..., None] * adjoint(u), precision="highest")


def _plain_determinant(a: Array) -> Array:
    diagonal_, parity, _ = _lu_determinant(a)
    return parity * jnp.prod(diagonal_, axis=-1)


@one_program
def det(a: ArrayLike) -> Array:
    """Determinants of matrices of shape ``[..., n, n]``, differentiable also where they are zero.

    Examples:

      >>> jnp.linalg.det(jnp.array([[1., 2.], [3., 5.]])).round(3)
      Array(-1., dtype=float32)
    """
    (a,) = _matrices("det", a, square=True)
    n = a.shape[-1]
    e = lambda i, j: a[..., i, j]
    if n == 0:
        return jnp.ones(a.shape[:-2], a.dtype)
    if n == 1:
        return e(0, 0)
    if n == 2:
        return e(0, 0) * e(1, 1) - e(0, 1) * e(1, 0)
    if n == 3:
        minor = lambda j, k: e(1, j) * e(2, k) - e(1, k) * e(2, j)
        return e(0, 0) * minor(1, 2) - e(0, 1) * minor(0, 2) + e(0, 2) * minor(0, 1)
    return _determinant()(_for_decomposition(a)).astype(a.dtype)


@functools.cache
def _signed_log_determinant():
    from bedrax.autodiff import custom_jvp

    def compute(a):
        diagonal_, parity, lu = _lu_determinant(a)
        size = abs(diagonal_)
        zero = jnp.any(diagonal_ == 0, axis=-1)
        sign = parity * jnp.prod(diagonal_ / jnp.where(size == 0, 1, size).astype(a.dtype), axis=-1)
        log = jnp.sum(jnp.log(jnp.where(size == 0, 1, size)), axis=-1)
        return (jnp.where(zero, 0, sign), jnp.where(zero, -np.inf, log).astype(size.dtype)), lu

    @custom_jvp
    def signed_log(a):
        return compute(a)[0]

    @signed_log.defjvp
    def _(primals, tangents):
        # d log(det a) = trace(inv(a) da): the real part changes the size, the imaginary part turns the sign
        (sign, log), lu = compute(primals[0])
        change = _trace_of_solution(lu, tangents[0])
        if dtypes.is_complex(sign.dtype):
            turn = lax.complex(jnp.zeros_like(log), jnp.imag(change))
            return (sign, log), (sign * turn, jnp.real(change))
        return (sign, log), (jnp.zeros_like(sign), change)

    return signed_log


@one_program(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants: ``det(a) = sign * exp(logabsdet)``.

    Args:
      a: array of shape ``[..., n, n]``.
      method: ``"lu"`` (default) or ``"qr"``, the decomposition to use.

    Returns:
      ``SlogdetResult(sign, logabsdet)``; sign 0 and -inf for singular matrices.

    Raises:
      ValueError: another method.

    Examples:

      >>> sign, logarithm = jnp.linalg.slogdet(jnp.array([[0., 1.], [1., 0.]]))
      >>> sign, logarithm
      (Array(-1., dtype=float32), Array(0., dtype=float32))
    """
    (given,) = _matrices("slogdet", a, square=True)
    a = _for_decomposition(given)
    if method is None or method == "lu":
        sign, log = _signed_log_determinant()(a)
    elif method == "qr":
        q, r = factor.qr(a, full_matrices=False)
        diagonal_ = jnp.diagonal(r, axis1=-2, axis2=-1)
        size = abs(diagonal_)
        unit = jnp.prod(diagonal_ / jnp.where(size == 0, 1, size).astype(a.dtype), axis=-1)
        sign, log = unit * _plain_determinant(q), jnp.sum(jnp.log(size), axis=-1)
    else:
        raise ValueError(f"slogdet: method is 'lu' (or None) or 'qr', got {method!r}")
    return SlogdetResult(sign.astype(given.dtype), log.astype(dtypes.to_real_dtype(given.dtype)))


def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """Condition numbers ``norm(x, p) * norm(inv(x), p)``; infinite for singular matrices.

    Args:
      x: array of shape ``[..., m, n]``, square unless `p` is 2 or -2.
      p: as `ord` of `norm` for matrices; None denotes 2.

    Examples:

      >>> jnp.linalg.cond(jnp.array([[2., 0.], [0., 0.5]]))
      Array(4., dtype=float32)
    """
    (x,) = _matrices("cond", x, square=p not in (None, 2, -2))
    if 0 in x.shape[-2:]:
        raise ValueError(f"jnp.linalg.cond: a matrix without elements has no condition number, got shape {x.shape}")
    if p in (None, 2, -2):
        s = svd(x, compute_uv=False)
        out = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        out = norm(x, ord=p, axis=(-2, -1)) * norm(inv(x), ord=p, axis=(-2, -1))
    ours = jnp.isnan(out) & ~jnp.any(jnp.isnan(x), axis=(-2, -1))
    return jnp.where(ours, np.inf, out).astype(out.dtype)


def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """The number of singular values that are not negligible.

    Args:
      M: array of shape ``[..., m, n]``; one of lower rank counts as a row.
      rtol: singular values up to this share of the greatest are negligible; default ``max(m, n) * eps``.
      hermitian: `M` is Hermitian.
      tol: the older name of `rtol`.

    Examples:

      >>> jnp.linalg.matrix_rank(jnp.array([[1., 2.], [2., 4.]]))
      Array(1, dtype=int32)
    """
    if tol is not None:
        if rtol is not None:
            raise ValueError(f"matrix_rank: only one of tol or rtol may be specified. got {tol=} and {rtol=}")
        rtol = tol
    (M,) = inexact("linalg.matrix_rank", M)
    if M.ndim < 2:
        return (~jnp.all(M == 0)).astype(dtypes.default_int_dtype())
    s = svd(M, compute_uv=False, hermitian=hermitian)
    if rtol is None:
        rtol = dims.max_dim(*M.shape[-2:]) * _eps(M.dtype)
    limit = jnp.asarray(rtol, s.dtype)[..., None] * jnp.max(s, axis=-1, keepdims=True, initial=0)
    return jnp.sum(s > limit, axis=-1)


# Functions of the array API standard that NumPy has under other names


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Matrices in the last two axes, transposed.

    Raises:
      ValueError: `x` has rank below 2.

    Examples:

      >>> jnp.linalg.matrix_transpose(jnp.arange(4).reshape(1, 2, 2))
      Array([[[0, 2],
              [1, 3]]], dtype=int32)
    """
    return jnp.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices in the last two axes.

    Args:
      x: array of rank 2 or more; its last two axes are matrices.
      offset: which diagonal: 0 is the main one, positive ones lie above.

    Raises:
      ValueError: the rank is below 2.

    Examples:

      >>> jnp.linalg.diagonal(jnp.arange(8).reshape(2, 2, 2))
      Array([[0, 3],
             [4, 7]], dtype=int32)
    """
    return jnp.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices in the last two axes.

    Args:
      x: array of rank 2 or more; its last two axes are matrices.
      offset: which diagonal, above the main one if positive.
      dtype: dtype of the sum; by default that of `x`, but at least the default integer type for integers.

    Returns:
      An array without the last two axes.

    Examples:

      >>> jnp.linalg.trace(jnp.arange(8).reshape(2, 2, 2))
      Array([ 3, 11], dtype=int32)
    """
    return products.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum of products over chosen axes, as `jax.numpy.tensordot`, with the arguments of the array API.

    Args:
      x1, x2: arrays.
      axes: a number N, for the last N axes of `x1` and the first N of `x2`; or a pair of axes or of sequences of axes.
      precision, preferred_element_type, out_sharding: as for `jax.numpy.dot`.

    Returns:
      An array with the remaining axes of `x1`, then those of `x2`.

    Raises:
      TypeError: `axes` is none of these, or more axes than there are, or contracted sizes differ.

    Examples:

      >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
      Array([[3., 3.],
             [3., 3.]], dtype=float32)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of the elements of two vectors.

    Args:
      x1, x2: arrays of rank 1.

    Returns:
      An array of shape ``(x1.size, x2.size)``.

    Raises:
      ValueError: an operand is not of rank 1.

    Examples:

      >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)
    """
    x1, x2 = array("linalg.outer", x1), array("linalg.outer", x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {x1.ndim=} and {x2.ndim=}")
    return products.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Cross products of vectors of three elements.

    Args:
      x1, x2: arrays, broadcast against each other.
      axis: the axis of the vectors.

    Raises:
      ValueError: vectors of another length.

    Examples:

      >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = array("linalg.cross", x1), array("linalg.cross", x2)
    lengths = [x.shape[axis_index(axis, x.ndim)] for x in (x1, x2)]
    if lengths != [3, 3]:
        raise ValueError(f"linalg.cross takes vectors of 3 elements, got {lengths[0]} and {lengths[1]}")
    return products.cross(x1, x2, axis=axis)
