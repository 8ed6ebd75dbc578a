"""Distributions, bijectors, Hamiltonian Monte Carlo and optimizers of the JAX substrate against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
normal = tfd.Normal(1.0, 2.0)
np.testing.assert_allclose(normal.log_prob(0.0), -0.125 - np.log(2 * np.sqrt(2 * np.pi)), rtol=1e-5)
np.testing.assert_allclose(normal.sample(20000, seed=jax.random.PRNGKey(0)).std(), 2.0, rtol=0.05)
np.testing.assert_allclose(tfd.kl_divergence(normal, tfd.Normal(0.0, 2.0)), 0.125, rtol=1e-5)
positive = tfb.Softplus()(normal)
x = jnp.linspace(0.1, 3.0, 5)
np.testing.assert_allclose(tfb.Softplus().inverse(tfb.Softplus().forward(x)), x, rtol=1e-4)
assert np.all(jax.vmap(jax.grad(positive.log_prob))(x) < 5)
mixture = tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-1.0, 1.0], 0.1))
np.testing.assert_allclose(mixture.mean(), 0.4, rtol=1e-4)
joint = tfd.MultivariateNormalTriL(jnp.zeros(2), jnp.array([[2.0, 0.0], [1.0, 1.0]]))
np.testing.assert_allclose(joint.covariance(), [[4, 2], [2, 2]], rtol=1e-4)


@jax.jit
def chain(key):
    kernel = tfp.mcmc.HamiltonianMonteCarlo(joint.log_prob, step_size=0.4, num_leapfrog_steps=5)
    kernel = tfp.mcmc.SimpleStepSizeAdaptation(kernel, 200)
    return tfp.mcmc.sample_chain(2000, jnp.zeros(2), kernel=kernel, num_burnin_steps=300, trace_fn=None, seed=key)


samples = chain(jax.random.PRNGKey(1))
np.testing.assert_allclose(np.cov(np.asarray(samples).T), [[4, 2], [2, 2]], atol=2.5)
rosenbrock = lambda x: jnp.sum(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2)
found = tfp.optimizer.bfgs_minimize(jax.value_and_grad(rosenbrock), jnp.zeros(2), tolerance=1e-4)
np.testing.assert_allclose(found.position, 1.0, rtol=5e-2)
process = tfd.GaussianProcess(tfp.math.psd_kernels.ExponentiatedQuadratic(), x[:, None], observation_noise_variance=0.1)
np.testing.assert_allclose(process.variance(), 1.1, rtol=1e-4)
