"""Solutions of linear equations, determinants and inverses."""

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
from bedrax.numpy.arguments import array
from bedrax.scipy.linalg.arguments import columns, complexified, matrices
from bedrax.scipy.linalg.factorizations import cholesky

__all__ = ["cho_solve", "det", "inv", "lu_solve", "solve", "solve_sylvester", "solve_triangular"]

_HIGHEST = {"precision": "highest"}


@one_program(static=("trans", "lower", "unit_diagonal"), everywhere=True)
def _solve_triangular(a, b, *, trans, lower, unit_diagonal):
    a, b, vector = columns("solve_triangular", a, b)
    out = factor.triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=trans > 0, conjugate_a=trans == 2, unit_diagonal=unit_diagonal
    )
    return out[..., 0] if vector else out


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: None = None,
    check_finite: bool = True,
) -> Array:
    """The solution of ``a @ x = b`` for triangular matrices.

    Args:
      a: of shape ``[..., n, n]``; one triangle is read.
      b: of shape ``[n]`` or ``[..., n, k]``; or ``[..., n]``, with one axis fewer than `a`, with a FutureWarning.
      trans: 0 or "N": solve with a; 1 or "T": with its transpose; 2 or "C": with its conjugate transpose.
      lower: read the lower triangle of `a`; False: the upper one.
      unit_diagonal: take the diagonal as ones.
      overwrite_b, debug, check_finite: no effect.

    Examples:

      >>> a = jnp.array([[2., 0.], [1., 1.]])
      >>> jax.scipy.linalg.solve_triangular(a, jnp.array([4., 5.]), lower=True)
      Array([2., 3.], dtype=float32)
    """
    kinds = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}
    one_of("solve_triangular", "trans", trans, kinds)
    a, b = matrices("solve_triangular", a, b, square=True)
    return _solve_triangular(a, b, trans=kinds[trans], lower=bool(lower), unit_diagonal=bool(unit_diagonal))


@one_program(static=("lower",), everywhere=True)
def _cho_solve(c, b, *, lower):
    c, b, vector = columns("cho_solve", c, b)
    first = factor.triangular_solve(c, b, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower)
    out = factor.triangular_solve(c, first, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower)
    return out[..., 0] if vector else out


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution of ``a @ x = b`` from the result of `cho_factor`.

    Args:
      c_and_lower: the factor, and whether it is lower triangular.
      b: of shape ``[n]`` or ``[..., n, k]``; or ``[..., n]``, with one axis fewer than `c`, with a FutureWarning.
      overwrite_b, check_finite: no effect.

    Examples:

      >>> factor = jax.scipy.linalg.cho_factor(jnp.array([[4., 2.], [2., 5.]]))
      >>> jax.scipy.linalg.cho_solve(factor, jnp.array([8., 12.])).round(3)
      Array([1., 2.], dtype=float32)
    """
    c, lower = c_and_lower
    c, b = matrices("cho_solve", c, b, square=True)
    return _cho_solve(c, b, lower=bool(lower))


@one_program(static=("trans",), everywhere=True)
def _lu_solve(lu, pivots, b, *, trans):
    n = lu.shape[-1]
    lu, b, vector = columns("lu_solve", lu, b)
    permutation = factor.lu_pivots_to_permutation(pivots, n)
    permutation = jnp.broadcast_to(permutation, lu.shape[:-1])
    solve = lambda b, lower, **how: factor.triangular_solve(
        lu, b, left_side=True, lower=lower, unit_diagonal=lower, **how
    )
    if trans == 0:
        b = jnp.take_along_axis(b, permutation[..., None], axis=-2)
        out = solve(solve(b, True), False)
    else:
        how = {"transpose_a": True, "conjugate_a": trans == 2}
        out = solve(solve(b, False, **how), True, **how)
        out = jnp.take_along_axis(out, jnp.argsort(permutation, axis=-1)[..., None], axis=-2)
    return out[..., 0] if vector else out


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution of ``a @ x = b`` from the result of `lu_factor`.

    Args:
      lu_and_piv: result of `lu_factor`.
      b: of shape ``[n]`` or ``[..., n, k]``; or ``[..., n]``, with one axis fewer than `lu`, with a FutureWarning.
      trans: 0: solve with a; 1: with its transpose; 2: with its conjugate transpose.
      overwrite_b, check_finite: no effect.

    Examples:

      >>> factored = jax.scipy.linalg.lu_factor(jnp.array([[1., 2.], [4., 2.]]))
      >>> jax.scipy.linalg.lu_solve(factored, jnp.array([5., 8.]))
      Array([1., 2.], dtype=float32)
    """
    one_of("lu_solve", "trans", trans, (0, 1, 2))
    lu, pivots = lu_and_piv
    lu, b = matrices("lu_solve", lu, b, square=True)
    return _lu_solve(lu, array("lu_solve", pivots), b, trans=trans)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The solution of ``a @ x = b``.

    Args:
      a: of shape ``[..., n, n]``.
      b: of shape ``[n]`` or ``[..., n, k]``.
      lower: for "pos": the triangle of `a` that is read.
      assume_a: ``"gen"``, ``"sym"``, ``"her"``: by LU decomposition; ``"pos"``: positive definite, by Cholesky's.
      overwrite_a, overwrite_b, debug, check_finite: no effect.

    Examples:

      >>> a = jnp.array([[2., 0.], [1., 1.]])
      >>> jax.scipy.linalg.solve(a, jnp.array([4., 5.]))
      Array([2., 3.], dtype=float32)
    """
    one_of("solve", "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    a, b = matrices("solve", a, b, square=True)
    if assume_a == "pos":
        return cho_solve((cholesky(a, lower=lower), lower), b)
    a, b, vector = columns("solve", a, b)
    out = jnp.linalg.solve(a, b)
    return out[..., 0] if vector else out


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse; infinite or NaN where a matrix is singular.

    Args:
      a: array of shape ``[..., n, n]``.
      overwrite_a, check_finite: have no effect.

    Examples:

      >>> jax.scipy.linalg.inv(jnp.array([[2., 0.], [1., 1.]]))
      Array([[ 0.5,  0. ],
             [-0.5,  1. ]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant.

    Args:
      a: array of shape ``[..., n, n]``.
      overwrite_a, check_finite: have no effect.

    Returns:
      An array of shape ``[...]``.

    Examples:

      >>> jax.scipy.linalg.det(jnp.array([[1., 2.], [3., 5.]])).round(3)
      Array(-1., dtype=float32)
    """
    return jnp.linalg.det(a)


@one_program(static=("method", "tol"), everywhere=True)
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The X with ``A @ X + X @ B = C``, on CPU.

    Args:
      A: of shape ``[m, m]``.
      B: of shape ``[n, n]``.
      C: of shape ``[m, n]``.
      method: ``"schur"``: by Bartels and Stewart; ``"eigen"``: by eigenvectors; those of A and B must exist and be well
        conditioned.
      tol: the result is NaN where an eigenvalue of A and one of B add up to less than this.

    Examples:

      >>> a, b = jnp.array([[1., 0.], [0., 2.]]), jnp.array([[3.]])
      >>> x = jax.scipy.linalg.solve_sylvester(a, b, jnp.array([[8.], [10.]]), method="eigen")
      >>> x.round(3)
      Array([[2.],
             [2.]], dtype=float32)
    """
    A, B, C = matrices("solve_sylvester", A, B, C, square=True)
    m, n = A.shape[-1], B.shape[-1]
    if A.ndim != 2 or B.shape != (n, n) or C.shape != (m, n):
        raise ValueError(f"solve_sylvester: shapes are [m, m], [n, n] and [m, n], got {A.shape}, {B.shape}, {C.shape}")
    one_of("solve_sylvester", "method", method, ("schur", "eigen"))
    real = not dtypes.is_complex(C.dtype)
    dtype = C.dtype
    A, B, C = complexified(A), complexified(B), complexified(C)
    matmul = lambda x, y: jnp.matmul(x, y, **_HIGHEST)
    if method == "schur":
        R, U = factor.schur(A)
        S, V = factor.schur(B)
        F = matmul(matmul(adjoint(U), C), V)
        a, b = jnp.diagonal(R), jnp.diagonal(S)
        eye = jnp.eye(m, dtype=R.dtype)

        def column(k, Y):  # the columns before k are known, those from k on are zero
            rhs = F[:, k] - matmul(Y, S[:, k])
            y = factor.triangular_solve(R + S[k, k] * eye, rhs[:, None], left_side=True, lower=False)
            return lax.dynamic_update_slice(Y, y, (np.int32(0), k))

        Y = lax.fori_loop(np.int32(0), np.int32(n), column, jnp.zeros_like(C))
        X = matmul(matmul(U, Y), adjoint(V))
    else:
        a, U = jnp.linalg.eig(A)
        b, V = jnp.linalg.eig(B)
        F = matmul(jnp.linalg.solve(U, C), V)
        X = matmul(matmul(U, F / (a[:, None] + b[None])), jnp.linalg.inv(V))
    near = jnp.any(abs(a[:, None] + b[None]) < tol)
    return jnp.where(near, jnp.nan, jnp.real(X).astype(dtype) if real else X)
