"""`jax.scipy.sparse.linalg`: Krylov methods for linear equations given by a function.

They work on the vector of a pytree's elements. A solution is differentiated by the implicit function theorem
(`custom_linear_solve`): a derivative is another solve of the same kind. Methods: Hestenes and Stiefel (1952), Saad and
Schultz (1986), van der Vorst (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, pytree
from bedrax.autodiff.implicit import custom_linear_solve
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.lax.choices import one_of
from bedrax.lax.primitives import linalg as factor
from bedrax.numpy.flatten_util import ravel_pytree

__all__ = ["bicgstab", "cg", "gmres"]


def _dot(x, y):
    return jnp.vdot(x, y, precision="highest")


def _norm(x):
    return jnp.sqrt(_dot(x, x).real)


def _operator(A: Any, what: str) -> Callable:
    if callable(A):
        return A
    shape = jnp.shape(A)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{what} is a square matrix, got shape {shape}")
    return lambda x: jnp.matmul(A, x, precision="highest")


def _solve(A, b, x0, tol, atol, maxiter, M, method: Callable, symmetric: bool, **options):
    """Run ``method(matvec, b, x0, threshold, maxiter, precondition)`` on vectors; returns (x, info)."""
    matvec = _operator(A, "linear operator")
    b = pytree.tree_map(jnp.asarray, b)
    b = pytree.tree_map(lambda x: x.astype(dtypes.to_inexact_dtype(x.dtype)), b)
    x0 = pytree.tree_map(jnp.zeros_like, b) if x0 is None else pytree.tree_map(jnp.asarray, x0)
    if pytree.tree_structure(x0) != pytree.tree_structure(b):
        raise ValueError(f"x0 is structured like b, got {pytree.tree_structure(x0)} and {pytree.tree_structure(b)}")
    shapes = [[x.shape for x in pytree.tree_leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"x0 and b have equal shapes, got {shapes[0]} and {shapes[1]}")
    x0 = pytree.tree_map(lambda x, like: x.astype(like.dtype), x0, b)
    flat_b, unravel = ravel_pytree(b)
    flat_x0 = lax.stop_gradient(ravel_pytree(x0)[0])
    if M is None:
        precondition = lambda x: x
    else:
        given = _operator(M, "preconditioner M")
        precondition = lambda x: ravel_pytree(given(unravel(x)))[0].astype(x.dtype)
    limit = 10 * flat_b.size if maxiter is None else maxiter

    def on_vector(x):
        return ravel_pytree(matvec(unravel(x)))[0].astype(x.dtype)

    def solve(matvec, b):
        threshold = jnp.maximum(tol * _norm(b), atol)
        return method(matvec, b, flat_x0, threshold, limit, precondition, **options)

    x = custom_linear_solve(
        on_vector, flat_b, solve, transpose_solve=solve, symmetric=symmetric and not dtypes.is_complex(flat_b.dtype)
    )
    info = jnp.where(jnp.isnan(_norm(x)), -1, 0)
    return unravel(x), info


def _safe_ratio(x, y):
    """``x / y``, and 0 where y is 0: there the method is finished."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _cg(matvec, b, x0, threshold, limit, precondition):
    def unfinished(state):
        k, _, r, *_ = state
        return (k < limit) & (_norm(r) > threshold)

    def step(state):
        k, x, r, p, gamma = state
        ap = matvec(p)
        alpha = _safe_ratio(gamma, _dot(p, ap)).astype(x.dtype)
        x, r = x + alpha * p, r - alpha * ap
        z = precondition(r)
        new = _dot(r, z)
        return k + 1, x, r, z + _safe_ratio(new, gamma).astype(x.dtype) * p, new

    r = b - matvec(x0)
    z = precondition(r)
    return lax.while_loop(unfinished, step, (np.int32(0), x0, r, z, _dot(r, z)))[1]


def _bicgstab(matvec, b, x0, threshold, limit, precondition):
    def unfinished(state):
        k, _, r, *_, broken = state
        return (k < limit) & (_norm(r) > threshold) & ~broken

    def step(state):
        k, x, r, p, rho, _broken = state
        p_hat = precondition(p)
        v = matvec(p_hat)
        alpha = _safe_ratio(rho, _dot(shadow, v))
        s = r - alpha * v
        s_hat = precondition(s)
        t = matvec(s_hat)
        omega = _safe_ratio(_dot(t, s), _dot(t, t))
        x = x + alpha * p_hat + omega * s_hat
        r = s - omega * t
        new = _dot(shadow, r)
        beta = _safe_ratio(new * alpha, rho * omega)
        return k + 1, x, r, r + beta * (p - omega * v), new, (omega == 0) | (alpha == 0)

    shadow = r = b - matvec(x0)
    return lax.while_loop(unfinished, step, (np.int32(0), x0, r, r, _dot(r, r), np.bool_(False)))[1]


def _arnoldi_step(matvec, precondition, basis, k):
    """Column k of the Hessenberg matrix, and the basis with its next vector (Gram-Schmidt, twice)."""
    w = matvec(precondition(basis[k]))
    column = jnp.zeros(basis.shape[0], basis.dtype)
    for _ in range(2):
        part = jnp.matmul(jnp.conj(basis), w, precision="highest")
        w = w - jnp.matmul(part, basis, precision="highest")
        column = column + part
    size = _norm(w).astype(basis.dtype)
    # The remainder of a vector within the space spanned already is rounding.
    lost = size.real <= 4 * float(dtypes.finfo(basis.dtype).eps) * _norm(column)
    size = jnp.where(lost, 0, size)
    column = lax.dynamic_update_index_in_dim(column, size, k + 1, 0)
    following = jnp.where(lost, 0, w / jnp.where(lost, 1, size))
    return column, lax.dynamic_update_index_in_dim(basis, following, k + 1, 0)


def _gmres(matvec, b, x0, threshold, limit, precondition, *, restart, incremental):
    n = b.shape[0]
    restart = min(restart, n)
    dtype = b.dtype

    def cycle(state):
        k, x, r, _ = state
        size = _norm(r)
        basis = jnp.zeros((restart + 1, n), dtype).at[0].set(_safe_ratio(r, size.astype(dtype)))
        target = jnp.zeros(restart + 1, dtype).at[0].set(size.astype(dtype))
        if incremental:
            y, basis = incremental_cycle(basis, target)
        else:

            def column(j, carry):
                h, basis = carry
                new, basis = _arnoldi_step(matvec, precondition, basis, j)
                return lax.dynamic_update_index_in_dim(h, new, j, 1), basis

            h = jnp.zeros((restart + 1, restart), dtype)
            h, basis = lax.fori_loop(np.int32(0), np.int32(restart), column, (h, basis))
            y = jnp.linalg.lstsq(h, target)[0]
        x_new = x + precondition(jnp.matmul(y, basis[:restart], precision="highest"))
        r_new = b - matvec(x_new)
        stalled = _norm(r_new) >= size
        return k + 1, jnp.where(stalled, x, x_new), jnp.where(stalled, r, r_new), stalled

    def incremental_cycle(basis, target):
        def unfinished(state):
            j, *_, residual = state
            return (j < restart) & (residual > threshold)

        def step(state):
            j, upper, basis, target, rotations, _ = state
            column, basis = _arnoldi_step(matvec, precondition, basis, j)

            def rotate(i, column):  # the rotations so far, on the new column
                c, s = rotations[i, 0], rotations[i, 1]
                top, low = column[i], column[i + 1]
                column = lax.dynamic_update_index_in_dim(column, jnp.conj(c) * top + jnp.conj(s) * low, i, 0)
                return lax.dynamic_update_index_in_dim(column, -s * top + c * low, i + 1, 0)

            column = lax.fori_loop(np.int32(0), j, rotate, column)
            top, low = column[j], column[j + 1]
            size = jnp.sqrt(abs(top) ** 2 + abs(low) ** 2).astype(dtype)
            c, s = jnp.where(size == 0, 1, _safe_ratio(top, size)), _safe_ratio(low, size)
            column = lax.dynamic_update_index_in_dim(column, jnp.where(size == 0, 1, size), j, 0)
            old = target[j]
            target = lax.dynamic_update_index_in_dim(target, jnp.where(size == 0, 0, jnp.conj(c) * old), j, 0)
            target = lax.dynamic_update_index_in_dim(target, -s * old, j + 1, 0)
            rotations = lax.dynamic_update_index_in_dim(rotations, jnp.stack([c, s]), j, 0)
            upper = lax.dynamic_update_index_in_dim(upper, column[:restart], j, 1)
            return j + 1, upper, basis, target, rotations, abs(s * old)

        eye = jnp.eye(restart, dtype=dtype)
        start = (np.int32(0), eye, basis, target, jnp.zeros((restart, 2), dtype), abs(target[0]))
        j, upper, basis, target, *_ = lax.while_loop(unfinished, step, start)
        target = jnp.where(jnp.arange(restart) < j, target[:restart], 0)
        return factor.triangular_solve(jnp.triu(upper), target, left_side=True, lower=False), basis

    def unfinished(state):
        k, _, r, stalled = state
        return (k < limit) & (_norm(r) > threshold) & ~stalled

    return lax.while_loop(unfinished, cycle, (np.int32(0), x0, b - matvec(x0), np.bool_(False)))[1]


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """The solution of ``A x = b`` by conjugate gradients, for Hermitian positive definite A.

    Args:
      A: a matrix, or a linear function of pytrees like `b`.
      b: an array, or a pytree of arrays.
      x0: the starting point; None is zeros.
      tol, atol: stop where ``norm(b - A x) <= max(tol * norm(b), atol)``.
      maxiter: the largest number of steps; None is ten times the number of unknowns.
      M: an approximation of the inverse of A, a matrix or a function as A is.

    Returns:
      ``(x, None)``: SciPy's information about convergence is not given.

    Examples:

      >>> a = jnp.array([[4., 1.], [1., 3.]])
      >>> x, _ = jax.scipy.sparse.linalg.cg(a, jnp.array([6., 7.]))
      >>> x.round(3)
      Array([1., 2.], dtype=float32)
    """
    return _solve(A, b, x0, tol, atol, maxiter, M, _cg, True)[0], None


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Array, None]:
    """The solution of ``A x = b`` by stabilized biconjugate gradients, for any A; arguments and result as for `cg`.

    Examples:

      >>> a = jnp.array([[4., 1.], [0., 2.]])
      >>> x, _ = jax.scipy.sparse.linalg.bicgstab(lambda x: a @ x, jnp.array([6., 4.]))
      >>> x.round(3)
      Array([1., 2.], dtype=float32)
    """
    return _solve(A, b, x0, tol, atol, maxiter, M, _bicgstab, False)[0], None


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Array, ...]:
    """The solution of ``A x = b`` by generalized minimal residuals, for any A.

    Args:
      A, b, x0, tol, atol, M: as for `cg`. The residual is that of the equation itself, also with `M`.
      restart: the dimension of the Krylov space that is built before a restart. Memory grows with it.
      maxiter: the largest number of restarts.
      solve_method: ``"batched"``: minimize once per restart, with fewer operations to wait for; ``"incremental"``:
        after every step, and stop as soon as possible.

    Returns:
      ``(x, info)``, where info is 0, or -1 where x is NaN.

    Examples:

      >>> a = jnp.array([[4., 1.], [0., 2.]])
      >>> x, _ = jax.scipy.sparse.linalg.gmres(a, jnp.array([6., 4.]))
      >>> x.round(3)
      Array([1., 2.], dtype=float32)
    """
    one_of("gmres", "solve_method", solve_method, ("batched", "incremental"))
    return _solve(
        A, b, x0, tol, atol, maxiter, M, _gmres, False, restart=restart, incremental=solve_method == "incremental"
    )
