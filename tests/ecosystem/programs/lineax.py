"""Linear systems by every solver against NumPy, their gradients, operators of Jacobians, least squares."""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

A, b = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]], np.float32), np.array([1.0, 2, 3], np.float32)
x = np.linalg.solve(A, b)
w = np.linalg.solve(A.T, np.ones(3, np.float32))
SOLVERS = [lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(True), lx.GMRES(1e-6, 1e-6), lx.BiCGStab(1e-6, 1e-6)]
for solver in SOLVERS:
    solve = lambda A, b: lx.linear_solve(lx.MatrixLinearOperator(A), b, solver).value  # noqa: B023
    np.testing.assert_allclose(jax.jit(solve)(A, b), x, rtol=1e-4)
    many = jax.vmap(solve, (None, 0))(A, np.stack([b, 2 * b]))
    np.testing.assert_allclose(many, [x, 2 * x], rtol=1e-4)
    gA, gb = jax.grad(lambda A, b: solve(A, b).sum(), (0, 1))(A, b)  # noqa: B023
    np.testing.assert_allclose(gb, w, rtol=1e-4)
    np.testing.assert_allclose(gA, -np.outer(w, x), rtol=1e-3, atol=1e-5)
positive = lx.MatrixLinearOperator(A, lx.positive_semidefinite_tag)
for solver in (lx.Cholesky(), lx.CG(1e-6, 1e-6)):
    np.testing.assert_allclose(lx.linear_solve(positive, b, solver).value, x, rtol=1e-4)
operator = lx.JacobianLinearOperator(lambda y, args: A @ y + 0.1 * y**2, jnp.zeros(3))
np.testing.assert_allclose(lx.linear_solve(operator, b).value, x, rtol=1e-4)
tall = np.random.RandomState(0).standard_normal((6, 3)).astype(np.float32)
fit = lx.linear_solve(lx.MatrixLinearOperator(tall), jnp.ones(6), lx.QR()).value
np.testing.assert_allclose(fit, np.linalg.lstsq(tall, np.ones(6), None)[0], rtol=1e-3)
