"""A recurrent network by `scan`, with gradients per example."""

import jax
import jax.numpy as jnp

keys = jax.random.split(jax.random.key(0), 4)
params = {
    "w": 0.1 * jax.random.normal(keys[0], (16, 16)),
    "u": 0.1 * jax.random.normal(keys[1], (8, 16)),
    "v": 0.1 * jax.random.normal(keys[2], (16,)),
}
xs = jax.random.normal(keys[3], (10, 12, 8))
ys = jnp.ones(10)


def loss(params, x, y):
    def step(h, x):
        return jnp.tanh(h @ params["w"] + x @ params["u"]), None

    h, _ = jax.lax.scan(step, jnp.zeros(16), x)
    return (h @ params["v"] - y) ** 2


gradients = jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0)))(params, xs, ys)
print({name: jnp.linalg.norm(g) for name, g in gradients.items()})
