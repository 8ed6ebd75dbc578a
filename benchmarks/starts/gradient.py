"""The gradient of a small function."""

import jax
import jax.numpy as jnp


def f(x):
    return jnp.sum(jnp.tanh(x) ** 2) / 2


print(jax.grad(f)(jnp.arange(4.0)))
