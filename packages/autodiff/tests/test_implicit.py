"""Implicit derivatives of linear solves and of roots, and derivatives of factorizations that are not unique."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import custom_linear_solve, custom_root, grad, hessian, jacfwd, jacrev, jvp
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.lax import matrices

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 3)) + 4 * np.eye(3)
B = RNG.standard_normal(3)


@pytest.fixture(autouse=True)
def _wide():
    with config.enable_x64(True):
        yield


def _dense_solve(matvec, b):
    """Solves with the matrix of the given linear map."""
    matrix = jacfwd(matvec)(lax.full_like(b, 0))
    lu, _, order = lax.lu(matrix)
    rows = lax.convert_element_type(
        lax.eq(lax.broadcast_in_dim(order, (3, 3), (0,)), lax.broadcasted_iota(np.int32, (3, 3), 1)), b.dtype
    )
    y = lax.triangular_solve(lu, lax.dot(rows, b), left_side=True, lower=True, unit_diagonal=True)
    return lax.triangular_solve(lu, y, left_side=True)


def _solve(a, b):
    return custom_linear_solve(lambda x: lax.dot(a, x), b, _dense_solve, _dense_solve)


def test_linear_solve_and_its_derivatives():
    x, inverse = np.linalg.solve(A, B), np.linalg.inv(A)
    np.testing.assert_allclose(_solve(A, B), x)
    np.testing.assert_allclose(jit(_solve)(A, B), x)
    by_matrix = -np.einsum("ij,k->ijk", inverse, x)
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(jacobian(_solve, argnums=0)(A, B), by_matrix, atol=1e-12)
        np.testing.assert_allclose(jacobian(_solve, argnums=1)(A, B), inverse, atol=1e-12)


def test_second_derivative_of_a_linear_solve():
    def f(a):
        return lax.reduce_sum(lax.sin(_solve(a, B)), (0,))

    direction = np.zeros_like(A)
    direction[0, 1] = 1
    step = 1e-5
    plus, minus = (np.asarray(grad(f)(A + s * direction)) for s in (step, -step))
    np.testing.assert_allclose(np.asarray(hessian(f)(A))[:, :, 0, 1], (plus - minus) / (2 * step), atol=1e-8)


def test_mapped_linear_solve():
    many = np.stack([A, A + 1])
    expected = np.stack([np.linalg.solve(a, B) for a in many])
    np.testing.assert_allclose(vmap(_solve, in_axes=(0, None))(many, B), expected)
    got = np.asarray(vmap(_solve, in_axes=(None, 1))(A, np.stack([B, 2 * B], 1)))
    np.testing.assert_allclose(got, [np.linalg.solve(A, B), 2 * np.linalg.solve(A, B)])


def test_reverse_mode_needs_a_transposed_solver():
    def f(b):
        return lax.reduce_sum(custom_linear_solve(lambda x: lax.dot(A, x), b, _dense_solve), (0,))

    np.testing.assert_allclose(jvp(f, (B,), (B,))[1], np.linalg.solve(A, B).sum())
    with pytest.raises(TypeError, match="needs transpose_solve"):
        grad(f)(B)


def test_linear_solve_checks_its_functions():
    with pytest.raises(TypeError, match="matvec must return the types"):
        custom_linear_solve(lambda x: lax.dot(A[:2], x), B, _dense_solve)
    with pytest.raises(TypeError, match="solve must return the structure"):
        custom_linear_solve(lambda x: lax.dot(A, x), B, lambda mv, b: (b, b))
    with pytest.raises(TypeError, match="must return a pair"):
        custom_linear_solve(lambda x: lax.dot(A, x), B, lambda mv, b: (b, b, b), has_aux=True)


def _square_root(a):
    def newton(f, x):
        step = lambda _, x: lax.sub(x, lax.div(f(x), lax.mul(x, 2.0)))
        return lax.fori_loop(0, 20, step, x)

    return custom_root(
        lambda y: lax.sub(lax.mul(y, y), a), lax.full_like(a, 1), newton, lambda g, y: lax.div(y, g(1.0))
    )


def test_root_and_its_derivatives():
    np.testing.assert_allclose(_square_root(2.0), np.sqrt(2))
    np.testing.assert_allclose(grad(_square_root)(2.0), 0.5 / np.sqrt(2))
    np.testing.assert_allclose(grad(grad(_square_root))(2.0), -0.25 * 2**-1.5)
    np.testing.assert_allclose(jit(grad(_square_root))(2.0), 0.5 / np.sqrt(2))
    x = np.array([2.0, 3.0])
    np.testing.assert_allclose(vmap(grad(_square_root))(x), 0.5 / np.sqrt(x))


def test_root_with_auxiliary_results():
    def f(a):
        return custom_root(
            lambda y: lax.sub(y, a),
            0.0,
            lambda f, x: (lax.sub(x, f(x)), {"steps": np.int32(1)}),
            lambda g, y: y,
            has_aux=True,
        )

    (root, aux), (change, _) = jvp(f, (3.0,), (1.0,))
    assert (float(root), int(aux["steps"]), float(change)) == (3.0, 1, 1.0)


def _numeric(f, x, t, step=1e-5):
    return (np.asarray(f(x + step * t)) - np.asarray(f(x - step * t))) / (2 * step)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_rest_of_a_full_qr_keeps_q_unitary(dtype):
    """The matrix determines the span of the further columns, and so the projection onto them; not the columns."""
    x, t = RNG.standard_normal((2, 5, 3)) + (1j * RNG.standard_normal((2, 5, 3)) if dtype == "complex128" else 0)

    def projection(a):
        rest = lax.slice_in_dim(lax.qr(a)[0], 3, 5, axis=1)
        return matrices.matmul(rest, matrices.adjoint(rest))

    np.testing.assert_allclose(jvp(projection, (x,), (t,))[1], _numeric(projection, x, t), atol=1e-8)
    (q, r), (dq, dr) = jvp(lambda a: lax.qr(a), (x,), (t,))
    q, r, dq, dr = map(np.asarray, (q, r, dq, dr))
    np.testing.assert_allclose(q.conj().T @ dq + dq.conj().T @ q, 0, atol=1e-12)
    np.testing.assert_allclose(dq @ r + q @ dr, t, atol=1e-12)


def test_refusals():
    x = RNG.standard_normal((4, 3))
    with pytest.raises(NotImplementedError, match="full_matrices=True has no derivative"):
        jvp(lambda a: lax.svd(a), (x,), (x,))
    square = x[:3]
    with pytest.raises(NotImplementedError, match="enable_eigvec_derivs"):
        jvp(lambda a: lax.eig(a), (square,), (square,))
    with pytest.raises(NotImplementedError, match="no derivative is defined"):
        jvp(lambda a: lax.schur(a), (square,), (square,))
    packed, taus = lax.geqrf(x)
    with pytest.raises(NotImplementedError, match="with respect to the matrix c only"):
        jvp(lambda a: lax.ormqr(a, taus, x), (np.asarray(packed),), (x,))


def test_equal_eigenvalues_leave_the_derivatives_of_eigenvalue_sums():
    """Eigenvectors have no derivative at a multiple eigenvalue; functions of eigenvalue sums have one."""
    trace = lambda a: lax.reduce_sum(lax.eigh(a)[1], (0,))
    np.testing.assert_allclose(grad(trace)(np.eye(3)), np.eye(3))
