"""Distributions of TensorFlow Probability inside NumPyro's models."""

import jax
import numpy as np
import numpyro
import numpyro.contrib.tfp.distributions as tfd
from numpyro.infer import MCMC, NUTS

DATA = np.random.RandomState(0).normal(3.0, 0.5, 50).astype(np.float32)


def model():
    mean = numpyro.sample("mean", tfd.Normal(0.0, 5.0))
    numpyro.sample("x", tfd.Normal(mean, 0.5), obs=DATA)


chain = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
chain.run(jax.random.PRNGKey(0))
np.testing.assert_allclose(chain.get_samples()["mean"].mean(), DATA.mean(), atol=0.1)
