"""Logistic regression by BFGS."""

import jax
import jax.numpy as jnp
from jax.scipy.optimize import minimize

key, other = jax.random.split(jax.random.key(0))
x = jax.random.normal(key, (100, 4))
y = (x @ jnp.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * jax.random.normal(other, (100,)) > 0).astype(jnp.float32)


def loss(w):
    z = x @ w
    return jnp.mean(jnp.logaddexp(0.0, z) - y * z) + 0.01 * jnp.sum(w**2)


result = minimize(loss, jnp.zeros(4), method="BFGS")
print(result.x, result.fun)
