"""Factorizations of matrices."""

from __future__ import annotations

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.lax.matrices import adjoint
from bedrax.lax.primitives import linalg as factor
from bedrax.numpy.arguments import inexact
from bedrax.scipy.linalg.arguments import complexified, matrices

__all__ = [
    "cho_factor",
    "cholesky",
    "eigh",
    "eigh_tridiagonal",
    "hessenberg",
    "lu",
    "lu_factor",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "svd",
]


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The factor of a positive definite matrix: L with ``a = L @ L^H`` if `lower`, else ``R = L^H``.

    Args:
      a: of shape ``[..., n, n]``; only the triangle of the result is read.
      lower: return the lower factor; False: the upper one.
      overwrite_a, check_finite: no effect.

    Returns:
      An array of shape ``[..., n, n]``, zero in the other triangle; NaN where a matrix is not positive definite.

    Examples:

      >>> jax.scipy.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
      Array([[2., 1.],
             [0., 2.]], dtype=float32)
    """
    (a,) = matrices("cholesky", a, square=True)
    if lower:
        return factor.cholesky(a, symmetrize_input=False)
    return adjoint(factor.cholesky(adjoint(a), symmetrize_input=False))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The factor of `cholesky` together with `lower`, for `cho_solve`.

    Args:
      a, lower: as in `cholesky`.
      overwrite_a, check_finite: have no effect.

    Returns:
      ``(factor, lower)``.

    Examples:

      >>> factor, lower = jax.scipy.linalg.cho_factor(jnp.array([[4., 2.], [2., 5.]]), lower=True)
      >>> jax.scipy.linalg.cho_solve((factor, lower), jnp.array([8., 12.])).round(3)
      Array([1., 2.], dtype=float32)
    """
    return cholesky(a, lower=lower), lower


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array:
    """The singular value decomposition ``a = U @ diag(s) @ Vh``.

    Args:
      a: of shape ``[..., m, n]``.
      full_matrices: U and Vh are square; otherwise their inner size is ``min(m, n)``.
      compute_uv: False returns ``s`` alone.
      overwrite_a, check_finite, lapack_driver: no effect.

    Returns:
      ``(U, s, Vh)``, or ``s``, in descending order.

    Examples:

      >>> jax.scipy.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
      Array([4., 3.], dtype=float32)
    """
    (a,) = matrices("svd", a)
    return factor.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def eigh(
    a: ArrayLike,
    b: None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    Args:
      a: of shape ``[..., n, n]``.
      lower: read the lower triangle of `a`; False: the upper one.
      eigvals_only: return the eigenvalues alone.
      b, eigvals, type: the generalized problem and subsets are not implemented.
      overwrite_a, overwrite_b, turbo, check_finite: no effect.

    Returns:
      ``(w, v)`` with the vectors in the columns of ``v``, or ``w``.

    Raises:
      NotImplementedError: `b`, `eigvals` or another `type` is given.

    Examples:

      >>> values, vectors = jax.scipy.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]))
      >>> values.round(3)
      Array([1.       , 3.0000002], dtype=float32)
    """
    if b is not None:
        raise NotImplementedError("eigh: only b=None is implemented; reduce the problem with cholesky(b).")
    if type != 1:
        raise NotImplementedError("eigh: only type=1 is implemented.")
    if eigvals is not None:
        raise NotImplementedError("eigh: only eigvals=None is implemented; take a slice of the result.")
    (a,) = matrices("eigh", a, square=True)
    v, w = factor.eigh(a, lower=lower, symmetrize_input=False)
    return w if eigvals_only else (w, v)


@one_program(static=("eigvals_only", "select", "select_range"), everywhere=True)
def _eigh_tridiagonal(d, e, *, eigvals_only, select, select_range):
    dtype = d.dtype if dtypes.is_complex(e.dtype) is dtypes.is_complex(d.dtype) else e.dtype
    n = d.shape[-1]
    below = jnp.zeros((*d.shape[:-1], n, n), dtype)
    i = np.arange(n)
    e = e.astype(dtype)
    dense = below.at[..., i, i].set(jnp.real(d).astype(dtype)).at[..., i[1:], i[:-1]].set(e)
    dense = dense.at[..., i[:-1], i[1:]].set(jnp.conj(e))  # not for the values: derivatives read both sides
    v, w = factor.eigh(dense, lower=True, symmetrize_input=False)
    if select == "i":
        first, last = select_range
        v, w = v[..., first : last + 1], w[..., first : last + 1]
    return w if eigvals_only else (w, v)


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: None = None,
) -> Array | tuple[Array, ...]:
    """Eigenvalues, in ascending order, and eigenvectors of a Hermitian tridiagonal matrix.

    The matrix is made dense, so that memory grows with n^2.

    Args:
      d: the diagonal, of shape ``[n]``; real, or complex numbers whose imaginary parts are not read.
      e: the diagonal below it, of shape ``[n - 1]``.
      eigvals_only: return the eigenvalues alone.
      select: ``"a"``: all; ``"i"``: those with the indices ``select_range``, both included.
      select_range: two integers.
      tol: accepted; all eigenvalues have the accuracy of the dtype.
      key: not used.

    Returns:
      ``(w, v)`` or ``w``.

    Raises:
      NotImplementedError: ``select="v"``: the number of eigenvalues in an interval is not known when tracing.

    Examples:

      >>> values = jax.scipy.linalg.eigh_tridiagonal(
      ...     jnp.array([2., 2.]), jnp.array([1.]), eigvals_only=True
      ... )
      >>> values.round(3)
      Array([1.       , 3.0000002], dtype=float32)
    """
    one_of("eigh_tridiagonal", "select", select, ("a", "i", "v"))
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal: select='v' has a result of unknown shape; use 'i', or a mask")
    d, e = inexact("linalg.eigh_tridiagonal", d, e)
    if d.ndim < 1 or e.shape[-1] != d.shape[-1] - 1:
        raise ValueError(f"eigh_tridiagonal: d has shape [n] and e [n - 1], got {d.shape} and {e.shape}")
    if select == "i":
        if select_range is None or len(select_range) != 2:
            raise ValueError("eigh_tridiagonal: select='i' needs select_range, two indices")
        first, last = (int(i) for i in select_range)
        if not 0 <= first <= last < d.shape[-1]:
            raise ValueError(f"eigh_tridiagonal: select_range={select_range} is not within [0, {d.shape[-1] - 1}]")
        select_range = (first, last)
    return _eigh_tridiagonal(d, e, eigvals_only=bool(eigvals_only), select=select, select_range=select_range)


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The LU decomposition with row exchanges, packed, for `lu_solve`.

    Args:
      a: array of shape ``[..., m, n]``.
      overwrite_a, check_finite: have no effect.

    Returns:
      ``(lu, piv)``: U on and above the diagonal and L (whose diagonal is one) below; row i was exchanged with row
      ``piv[i]``.

    Examples:

      >>> factor, pivots = jax.scipy.linalg.lu_factor(jnp.array([[1., 2.], [4., 2.]]))
      >>> pivots
      Array([1, 1], dtype=int32)
    """
    (a,) = matrices("lu_factor", a)
    packed, pivots, _ = factor.lu(a)
    return packed, pivots


@one_program(static=("permute_l", "overwrite_a", "check_finite"), everywhere=True)
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """The decomposition ``a = P @ L @ U``.

    Args:
      a: of shape ``[..., m, n]``.
      permute_l: return ``(P @ L, U)``.
      overwrite_a, check_finite: no effect.

    Returns:
      ``(P, L, U)``; L of shape ``[..., m, k]`` and U of shape ``[..., k, n]`` with ``k = min(m, n)``.

    Examples:

      >>> x = jnp.array([[1., 2.], [4., 2.]])
      >>> p, l, u = jax.scipy.linalg.lu(x)
      >>> u
      Array([[4. , 2. ],
             [0. , 1.5]], dtype=float32)
      >>> jnp.allclose(p @ l @ u, x)
      Array(True, dtype=bool)
    """
    (a,) = matrices("lu", a)
    packed, _, permutation = factor.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    lower = jnp.tril(packed[..., :, :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    upper = jnp.triu(packed[..., :k, :])
    # Row i of the factors' product is row permutation[i] of a.
    exchange = (permutation[..., None, :] == jnp.arange(m, dtype=permutation.dtype)[:, None]).astype(
        dtypes.to_real_dtype(a.dtype)
    )
    if permute_l:
        return jnp.matmul(exchange.astype(a.dtype), lower, precision="highest"), upper
    return exchange, lower, upper


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """The decomposition ``a = Q @ R``; with `pivoting`, ``a[:, p] = Q @ R``.

    Args:
      a: of shape ``[..., m, n]``.
      mode: ``"full"``: Q is square; ``"economic"``: Q has ``min(m, n)`` columns; ``"r"``: return R only.
      pivoting: permute the columns so that the diagonal of R falls in magnitude.
      overwrite_a, lwork, check_finite: no effect.

    Returns:
      ``(Q, R)``, ``(Q, R, p)``, ``(R,)`` or ``(R, p)``.

    Examples:

      >>> x = jnp.array([[3., 1.], [4., 2.]])
      >>> q, r = jax.scipy.linalg.qr(x)
      >>> jnp.allclose(q @ r, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    one_of("qr", "mode", mode, ("full", "r", "economic"))
    (a,) = matrices("qr", a)
    out = factor.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(out[1:]) if mode == "r" else tuple(out)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The decomposition of `qr` (economic), and the product of Q with `c`.

    Args:
      a: of shape ``[..., m, n]``.
      c: a matrix or a vector.
      mode: ``"left"``: ``Q @ c``; ``"right"``: ``c @ Q``.
      pivoting: as for `qr`.
      conjugate: multiply with the complex conjugate of Q.
      overwrite_a, overwrite_c: no effect.

    Returns:
      ``(product, R)`` or ``(product, R, p)``.

    Examples:

      >>> x, c = jnp.array([[3., 1.], [4., 2.]]), jnp.eye(2)
      >>> product, r = jax.scipy.linalg.qr_multiply(x, c)
      >>> jnp.allclose(product @ r, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    one_of("qr_multiply", "mode", mode, ("left", "right"))
    a, c = matrices("qr_multiply", a, c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    if conjugate:
        q = jnp.conj(q)
    rows = q.shape[-2]
    if mode == "left" and c.ndim > 0 and q.shape[-1] != c.shape[-2 if c.ndim > 1 else 0] == rows:
        q = qr(a, mode="full", pivoting=pivoting)[0]  # c has as many rows as the square Q has columns
        q = jnp.conj(q) if conjugate else q
    product = jnp.matmul(q, c, precision="highest") if mode == "left" else jnp.matmul(c, q, precision="highest")
    return (product, *rest)


@one_program(static=("output",), everywhere=True)
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """The Schur decomposition ``a = Z @ T @ Z^H`` with unitary Z, on CPU.

    Args:
      a: of shape ``[..., n, n]``.
      output: ``"real"``: T of a real matrix is real, and has blocks of two on its diagonal for pairs of complex
        eigenvalues; ``"complex"``: T is upper triangular.

    Returns:
      ``(T, Z)``.

    Examples:

      >>> x = jnp.array([[2., 1.], [0., 3.]])
      >>> t, z = jax.scipy.linalg.schur(x)
      >>> jnp.allclose(z @ t @ z.T, x, atol=1e-5)
      Array(True, dtype=bool)
    """
    one_of("schur", "output", output, ("real", "complex"))
    (a,) = matrices("schur", a, square=True)
    t, z = factor.schur(complexified(a) if output == "complex" else a)
    return t, z


@one_program(static=("check_finite",), everywhere=True)
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form from the real one.

    Args:
      T, Z: results of `schur`, of shape ``[n, n]``.
      check_finite: no effect.

    Returns:
      ``(T, Z)``, complex, with T upper triangular.

    Examples:

      >>> t, z = jax.scipy.linalg.schur(jnp.array([[0., -1.], [1., 0.]]))
      >>> t, z = jax.scipy.linalg.rsf2csf(t, z)
      >>> bool(jnp.abs(t[1, 0]) < 1e-5)
      True
    """
    T, Z = matrices("rsf2csf", T, Z, square=True)
    if T.shape != Z.shape or T.ndim != 2:
        raise ValueError(f"rsf2csf: expected two square matrices of one size, got {T.shape} and {Z.shape}")
    T, Z = complexified(T), complexified(Z)
    n = T.shape[-1]

    def step(i, state):
        # A rotation of rows and columns m - 1 and m that makes the element below the diagonal zero.
        T, Z = state
        m = n - 1 - i
        below = T[m, m - 1]
        block = lax.dynamic_slice(T, (m - 1, m - 1), (2, 2))
        p, q, r, s = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
        half = (p - s) / 2
        root = jnp.sqrt(half * half + q * r)
        gap = jnp.where(abs(half + root) < abs(half - root), half - root, half + root)  # eigenvalue - s, the larger
        size = jnp.sqrt(abs(gap) ** 2 + abs(r) ** 2)
        needed = abs(below) > jnp.finfo(T.dtype).eps * (abs(p) + abs(s))
        size = jnp.where(needed, size, 1).astype(T.dtype)
        c, w = jnp.where(needed, gap / size, 1), jnp.where(needed, r / size, 0)
        rotation = jnp.stack([jnp.stack([jnp.conj(c), w]), jnp.stack([-w, c])])  # r is real: T was
        rows = jnp.matmul(rotation, lax.dynamic_slice(T, (m - 1, 0), (2, n)), precision="highest")
        T = lax.dynamic_update_slice(T, rows, (m - 1, 0))
        back = jnp.conj(rotation).T
        T = lax.dynamic_update_slice(
            T, jnp.matmul(lax.dynamic_slice(T, (0, m - 1), (n, 2)), back, precision="highest"), (0, m - 1)
        )
        Z = lax.dynamic_update_slice(
            Z, jnp.matmul(lax.dynamic_slice(Z, (0, m - 1), (n, 2)), back, precision="highest"), (0, m - 1)
        )
        return T.at[m, m - 1].set(0), Z

    return lax.fori_loop(0, max(n - 1, 0), step, (T, Z))


@one_program(static=("calc_q", "overwrite_a", "check_finite"), everywhere=True)
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """The Hessenberg form: ``a = Q @ H @ Q^H`` with unitary Q and H zero below the diagonal under the main one, on CPU.

    Args:
      a: of shape ``[..., n, n]``.
      calc_q: return ``(H, Q)``; otherwise H.
      overwrite_a, check_finite: no effect.

    Examples:

      >>> x = jnp.array([[1., 2., 3.], [4., 5., 6.], [7., 8., 10.]])
      >>> h, q = jax.scipy.linalg.hessenberg(x, calc_q=True)
      >>> jnp.allclose(q @ h @ q.T, x, atol=1e-4)
      Array(True, dtype=bool)
    """
    (a,) = matrices("hessenberg", a, square=True)
    n = a.shape[-1]
    packed, taus = factor.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    q = jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
    if n > 1:
        q = q.at[..., 1:, 1:].set(factor.householder_product(packed[..., 1:, :-1], taus))
    return h, q


@one_program(static=("side", "method", "eps", "max_iterations"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition ``a = u @ p`` (right) or ``a = p @ u`` (left), p positive semidefinite.

    Args:
      a: of shape ``[m, n]``.
      side: the side of p.
      method: ``"qdwh"``: Halley's iteration, for full rank, and m >= n (right) or m <= n (left); ``"svd"``: by singular
        values.
      eps, max_iterations: of the iteration.

    Returns:
      ``(u, p)``.

    Raises:
      NotImplementedError: "qdwh" with another shape.

    Examples:

      >>> unitary, positive = jax.scipy.linalg.polar(jnp.array([[0., -2.], [2., 0.]]))
      >>> positive.round(3)
      Array([[ 2., -0.],
             [-0.,  2.]], dtype=float32)
    """
    one_of("polar", "side", side, ("right", "left"))
    (a,) = matrices("polar", a)
    if a.ndim != 2:
        raise ValueError(f"polar: expected a matrix, got shape {a.shape}; use vmap for batches.")
    m, n = a.shape
    if method == "qdwh":
        if (side == "right") != (m >= n) and m != n:
            raise NotImplementedError(f"polar: 'qdwh' of shape {a.shape} with {side=} is not supported; use 'svd'")
        u, p, *_ = lax.qdwh(a if side == "right" else adjoint(a), eps=eps, max_iterations=max_iterations)
        return (u, p) if side == "right" else (adjoint(u), p)
    if method != "svd":
        raise ValueError(f"polar: method is 'qdwh' or 'svd', got {method!r}")
    u, s, vh = factor.svd(a, full_matrices=False)
    s = s.astype(a.dtype)
    p = (adjoint(vh) * s) @ vh if side == "right" else (u * s) @ adjoint(u)
    return u @ vh, p
