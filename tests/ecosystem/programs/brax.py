"""Pendulums fall in a batch of environments, compiled as one loop; pushed the way they lean, they fall sooner."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from brax import envs

env = envs.get_environment("inverted_pendulum", backend="generalized")


@functools.partial(jax.jit, static_argnums=1)
def angles(keys, push):
    states = jax.vmap(env.reset)(keys)

    def move(s, _):
        s = jax.vmap(env.step)(s, -push * jnp.sign(s.obs[:, 1:2]))
        return s, s.obs[:, 1]

    return jax.lax.scan(move, states, None, 20)[1]


keys = jax.random.split(jax.random.PRNGKey(0), 4)
free, pushed = angles(keys, 0.0), angles(keys, 1.0)
assert free.shape == (20, 4) and np.all(np.isfinite(free))
assert np.all(np.abs(free[-1]) > np.abs(free[0])) and np.mean(np.abs(pushed[-1])) > np.mean(np.abs(free[-1]))
