"""Roots, fixed points, least squares, minima; gradients through the solution."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

for solver in (optx.Newton(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6), optx.LevenbergMarquardt(1e-6, 1e-6)):
    root = lambda a: optx.root_find(lambda y, a: y**3 - a, solver, jnp.array(1.0), a).value  # noqa: B023
    np.testing.assert_allclose(root(2.0), 2 ** (1 / 3), rtol=1e-4)
    np.testing.assert_allclose(jax.grad(root)(2.0), 2 ** (-2 / 3) / 3, rtol=1e-3)
fixed = optx.fixed_point(lambda y, _: jnp.cos(y), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(1.0)).value
np.testing.assert_allclose(fixed, 0.739085, rtol=1e-4)
residual = lambda y, _: jnp.array([10 * (y[1] - y[0] ** 2), 1 - y[0]])
for solver in (optx.LevenbergMarquardt(1e-5, 1e-5), optx.GaussNewton(1e-5, 1e-5), optx.Dogleg(1e-5, 1e-5)):
    np.testing.assert_allclose(optx.least_squares(residual, solver, jnp.zeros(2)).value, 1.0, rtol=1e-3)
for solver in (optx.BFGS(1e-5, 1e-5), optx.NelderMead(1e-5, 1e-5)):
    found = optx.minimise(lambda y, _: jnp.sum(residual(y, None) ** 2), solver, jnp.zeros(2), max_steps=2000).value
    np.testing.assert_allclose(found, 1.0, rtol=2e-2)
