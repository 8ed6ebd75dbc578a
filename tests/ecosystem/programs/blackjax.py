"""HMC, NUTS with window adaptation and sequential Monte Carlo sample a normal distribution."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

logp = lambda x: -0.5 * jnp.sum((x - jnp.array([1.0, -1.0])) ** 2 / jnp.array([0.25, 1.0]))


def chain(kernel, state, count):
    def step(state, key):
        state, _ = kernel(key, state)
        return state, state.position

    return jax.lax.scan(step, state, jax.random.split(jax.random.key(1), count))[1]


warm = blackjax.window_adaptation(blackjax.nuts, logp)
(state, parameters), _ = warm.run(jax.random.key(0), jnp.zeros(2), 200)
samples = jax.jit(lambda s: chain(blackjax.nuts(logp, **parameters).step, s, 1000))(state)
np.testing.assert_allclose(samples.mean(0), [1, -1], atol=0.15)
np.testing.assert_allclose(samples.std(0), [0.5, 1], atol=0.15)
hmc = blackjax.hmc(logp, 0.3, jnp.ones(2), 10)
samples = jax.jit(lambda s: chain(hmc.step, s, 1000))(hmc.init(jnp.zeros(2)))
np.testing.assert_allclose(samples.mean(0), [1, -1], atol=0.2)
