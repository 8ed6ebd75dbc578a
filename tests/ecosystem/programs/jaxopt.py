"""Solvers against known minima; gradients through the optimum of a ridge regression."""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
for solver in (jaxopt.LBFGS(rosenbrock, maxiter=200), jaxopt.BFGS(rosenbrock, maxiter=200)):
    np.testing.assert_allclose(solver.run(jnp.zeros(2)).params, 1.0, rtol=1e-2)
X = np.random.RandomState(0).standard_normal((20, 3)).astype(np.float32)
y = X @ np.array([1.0, 2.0, 3.0], np.float32)
ridge = lambda w, l2: jnp.mean((X @ w - y) ** 2) + l2 * jnp.sum(w**2)
exact = lambda l2: np.linalg.solve(X.T @ X / 20 + l2 * np.eye(3), X.T @ y / 20)
solver = jaxopt.GradientDescent(ridge, maxiter=500, tol=1e-6)
np.testing.assert_allclose(solver.run(jnp.zeros(3), 0.1).params, exact(0.1), rtol=1e-3)
slope = jax.jacobian(lambda l2: solver.run(jnp.zeros(3), l2).params)(0.1)
np.testing.assert_allclose(slope, (exact(0.11) - exact(0.09)) / 0.02, rtol=2e-2)
box = jaxopt.ProjectedGradient(lambda x: jnp.sum((x - 2) ** 2), jaxopt.projection.projection_box)
np.testing.assert_allclose(box.run(jnp.zeros(2), (0.0, 1.0)).params, 1.0, rtol=1e-4)
np.testing.assert_allclose(jaxopt.projection.projection_simplex(jnp.array([2.0, 0.0])), [1, 0], atol=1e-6)
