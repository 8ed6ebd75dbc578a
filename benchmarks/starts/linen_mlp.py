"""A perceptron in Flax Linen, trained for twenty steps with Optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (64, 32):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


model, tx = MLP(), optax.adam(1e-3)
key = jax.random.key(0)
x = jax.random.normal(key, (32, 20))
y = jnp.arange(32) % 10
params = model.init(key, x)
state = tx.init(params)


@jax.jit
def step(params, state):
    def loss(params):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, x), y).mean()

    value, gradient = jax.value_and_grad(loss)(params)
    updates, state = tx.update(gradient, state)
    return optax.apply_updates(params, updates), state, value


for _ in range(20):
    params, state, value = step(params, state)
print(value)
