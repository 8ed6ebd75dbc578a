"""Linear algebra with sparse matrices: linear systems, and some of the eigenvectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff.implicit import custom_linear_solve
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.callbacks import pure_callback
from bedrax.sparse.bcsr import BCSR
from bedrax.sparse.formats import JAXSparse, composed

__all__ = ["lobpcg_standard", "spsolve", "spsolve_p"]


def _direct(data, indices, indptr, b):
    """The solution, by SciPy, on the host."""
    import scipy.sparse
    import scipy.sparse.linalg

    parts = [np.asarray(x) for x in (data, indices, indptr)]
    matrix = scipy.sparse.csr_matrix(tuple(parts), shape=(len(b), len(b)))
    return scipy.sparse.linalg.spsolve(matrix.tocsc(), np.asarray(b)).astype(data.dtype)


def _spsolve(data, indices, indptr, b, *, tol, reorder):
    n = b.shape[0]
    matrix = BCSR((data, indices, indptr), shape=(n, n)).to_bcoo()
    result = jnp.zeros(b.shape, b.dtype)
    call = lambda parts, b: pure_callback(_direct, result, *parts, b, vmap_method="sequential")
    transposed = BCSR.from_bcoo(matrix.T)
    return custom_linear_solve(
        lambda x: matrix @ x,
        b,
        lambda _, b: call(lax.stop_gradient((data, indices, indptr)), b),
        lambda _, b: call(lax.stop_gradient((transposed.data, transposed.indices, transposed.indptr)), b),
    )


spsolve_p: Final = composed("spsolve", _spsolve)


def spsolve(data: Array, indices: Array, indptr: Array, b: ArrayLike, tol: float = 1e-6, reorder: int = 1) -> Array:
    """The solution of a linear system with a square matrix in compressed rows, by a direct method.

    It is computed on the host by SciPy, and differentiated by the implicit function theorem.

    Args:
      data, indices, indptr: the matrix; see `CSR`.
      b: the right side, ``(n,)``.
      tol: the limit of a pivot that counts as zero; only the default, because SciPy has its own.
      reorder: the order of elimination; only 1, the default: SciPy chooses it.

    Returns:
      ``(n,)``, of the dtype of `b`.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import linalg

      >>> mat = sparse.CSR.fromdense(jnp.array([[2., 0.], [1., 4.]]))
      >>> linalg.spsolve(mat.data, mat.indices, mat.indptr, jnp.array([2., 9.]))
      Array([1., 2.], dtype=float32)
    """
    if tol != 1e-6 or reorder != 1:
        raise NotImplementedError(f"spsolve decides about pivots and their order itself, got {tol=}, {reorder=}")
    data, indices, indptr, b = (jnp.asarray(x) for x in (data, indices, indptr, b))
    if b.ndim != 1 or indptr.shape != (b.shape[0] + 1,) or data.shape != indices.shape or data.dtype != b.dtype:
        raise ValueError(
            f"spsolve takes a square matrix and a vector of one dtype, got data {data.dtype.name}{list(data.shape)}, indices"
            f" {list(indices.shape)}, indptr {list(indptr.shape)}, b {b.dtype.name}{list(b.shape)}"
        )
    return spsolve_p.bind(data, indices, indptr, b, tol=tol, reorder=reorder)


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, ...]:
    """The largest eigenvalues of a symmetric matrix, by the locally optimal block conjugate gradient method.

    Args:
      A: ``(n, n)``, sparse or dense, or a function ``(n, k) -> (n, k)`` that multiplies by it.
      X: ``(n, k)``, the start: independent columns; ``5 k < n``.
      m: the maximum number of steps.
      tol: the limit of residuals relative to the eigenvalue and `n`. Default: ten units of the last place.

    Returns:
      (eigenvalues, the largest first, ``(k,)``; eigenvectors ``(n, k)``; number of steps).

    Source: Knyazev, "Toward the optimal preconditioned eigensolver" (2001).

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import linalg

      >>> mat = sparse.BCOO.fromdense(jnp.diag(jnp.arange(1., 21.)))
      >>> start = jax.random.normal(jax.random.key(0), (20, 2))
      >>> values, vectors, steps = linalg.lobpcg_standard(mat, start)
      >>> print(values.round(2))
      [20. 19.]
      >>> print(bool(jnp.abs(mat @ vectors - vectors * values).max() < 1e-2))
      True
    """
    X = jnp.asarray(X)
    if X.ndim != 2 or 5 * X.shape[1] >= X.shape[0]:
        raise ValueError(
            f"lobpcg_standard: expected columns (n, k) with 5 k < n to start from, got the shape {X.shape}"
        )
    n, k = X.shape
    apply: Callable[..., Any] = A if callable(A) and not isinstance(A, JAXSparse) else lambda x: A @ x
    tol = 10 * jnp.finfo(X.dtype).eps if tol is None else tol
    X = jnp.linalg.qr(X)[0]

    def ritz(S):
        """The best eigenvectors in the span of a basis, and their values."""
        inner = S.T @ apply(S)
        values, vectors = jnp.linalg.eigh((inner + inner.T) / 2)
        return values[::-1][:k], S @ vectors[:, ::-1][:, :k]

    def residuals(values, X):
        return apply(X) - X * values

    def continues(state):
        step, values, X, _, R = state
        small = jnp.linalg.norm(R, axis=0) <= tol * n * (jnp.abs(values) + jnp.linalg.norm(X, axis=0))
        return (step < m) & ~small.all()

    def improve(state):
        step, values, X, P, R = state
        S = jnp.linalg.qr(jnp.concatenate([X, R, P], 1))[0]
        values, new = ritz(S)
        P = new - X @ (X.T @ new)  # the new part of the direction of the step
        return step + 1, values, new, P, residuals(values, new)

    values, X = ritz(X)
    start = (0, values, X, jnp.zeros_like(X), residuals(values, X))
    step, values, X, _, _ = lax.while_loop(continues, improve, start)
    return values, X, step
