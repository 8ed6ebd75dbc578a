"""Gaussian processes against the formulas; a solver of linear time; hyperparameters by gradient."""

import jax
import jax.numpy as jnp
import numpy as np
from tinygp import GaussianProcess, kernels

x = np.sort(np.random.RandomState(0).uniform(0, 5, 20)).astype(np.float32)
y = np.sin(x)
K = np.exp(-0.5 * (x[:, None] - x[None]) ** 2) + 0.01 * np.eye(20)
gp = GaussianProcess(kernels.ExpSquared(), x, diag=0.01)
expected = -0.5 * y @ np.linalg.solve(K, y) - 0.5 * np.linalg.slogdet(K)[1] - 10 * np.log(2 * np.pi)
np.testing.assert_allclose(gp.log_probability(y), expected, rtol=1e-2)
mean = gp.condition(y, jnp.array([2.5])).gp.mean
np.testing.assert_allclose(mean, np.sin(2.5), atol=0.05)
loss = jax.jit(lambda s: -GaussianProcess(kernels.Matern32(s), x, diag=0.01).log_probability(y))
fast = jax.jit(lambda s: -GaussianProcess(kernels.quasisep.Matern32(s), x, diag=0.01).log_probability(y))
np.testing.assert_allclose(fast(1.5), loss(1.5), rtol=1e-3)
h = 1e-2
np.testing.assert_allclose(jax.grad(fast)(1.5), (loss(1.5 + h) - loss(1.5 - h)) / (2 * h), rtol=5e-2)
