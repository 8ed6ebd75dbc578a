"""NUTS and stochastic variational inference find the weights of a regression; its predictions."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

X = np.random.RandomState(0).standard_normal((32, 3)).astype(np.float32)
W = np.array([1.0, -2.0, 0.5], np.float32)
Y = X @ W


def model(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(x @ w, 0.1), obs=y)


chain = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
chain.run(jax.random.PRNGKey(0), X, Y)
samples = chain.get_samples()
np.testing.assert_allclose(samples["w"].mean(0), W, atol=0.1)
seen = Predictive(model, samples)(jax.random.PRNGKey(1), X)["y"]
np.testing.assert_allclose(seen.mean(0), Y, atol=0.2)
svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
found = svi.run(jax.random.PRNGKey(2), 400, X, Y, progress_bar=False)
np.testing.assert_allclose(found.params["w_auto_loc"], W, atol=0.1)
