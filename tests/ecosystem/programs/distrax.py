"""Distributions, flows of bijectors and hidden Markov models against closed forms."""

import distrax
import jax
import jax.numpy as jnp
import numpy as np

normal = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.array([1.0, 2.0]))
np.testing.assert_allclose(normal.log_prob(jnp.zeros(2)), -np.log(2 * np.pi * 2), rtol=1e-5)
sample, logp = normal.sample_and_log_prob(seed=jax.random.PRNGKey(0), sample_shape=(5000,))
np.testing.assert_allclose(sample.std(0), [1, 2], rtol=0.1)
np.testing.assert_allclose(logp, normal.log_prob(sample), rtol=1e-4)
np.testing.assert_allclose(distrax.Normal(1.0, 2.0).kl_divergence(distrax.Normal(0.0, 2.0)), 0.125, rtol=1e-5)

flow = distrax.Chain([distrax.ScalarAffine(shift=1.0, scale=2.0), distrax.Tanh()])
x = jnp.linspace(-1.0, 1.0, 5)
y, logdet = flow.forward_and_log_det(x)
np.testing.assert_allclose(logdet, np.log(np.abs(jax.vmap(jax.grad(flow.forward))(x))), rtol=1e-3, atol=1e-5)
np.testing.assert_allclose(flow.inverse(y), x, rtol=1e-3, atol=1e-5)
through = jax.jit(lambda d, x: d.log_prob(x))(distrax.Transformed(distrax.Normal(0.0, 1.0), flow), y)
np.testing.assert_allclose(through, distrax.Normal(0.0, 1.0).log_prob(x) - logdet, rtol=1e-3)

hmm = distrax.HMM(
    distrax.Categorical(probs=jnp.array([0.5, 0.5])),
    distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.1, 0.9]])),
    distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.3, 0.3])),
)
states, seen = hmm.sample(seed=jax.random.PRNGKey(1), seq_len=40)
assert np.mean(np.asarray(hmm.viterbi(seen)) == np.asarray(states)) > 0.9
categorical = distrax.Categorical(logits=jnp.log(jnp.array([0.2, 0.8])))
np.testing.assert_allclose(categorical.entropy(), -(0.2 * np.log(0.2) + 0.8 * np.log(0.8)), rtol=1e-5)
