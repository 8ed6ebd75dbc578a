"""A transformer in Flax Linen: initialization and three steps."""

import flax.linen as nn
import jax
import optax


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, mask):
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x), mask=mask)
        y = nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
        return x + nn.Dense(self.width)(y)


class Transformer(nn.Module):
    vocabulary: int = 100
    width: int = 64
    layers: int = 2

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.vocabulary, self.width)(tokens)
        x = x + self.param("positions", nn.initializers.normal(0.02), (32, self.width))[: tokens.shape[1]]
        mask = nn.make_causal_mask(tokens)
        for _ in range(self.layers):
            x = Layer(self.width)(x, mask)
        return nn.Dense(self.vocabulary)(nn.LayerNorm()(x))


model, tx = Transformer(), optax.adam(1e-3)
key = jax.random.key(0)
tokens = jax.random.randint(key, (4, 16), 0, 100)
params = model.init(key, tokens)
state = tx.init(params)


@jax.jit
def step(params, state):
    def loss(params):
        logits = model.apply(params, tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    value, gradient = jax.value_and_grad(loss)(params)
    updates, state = tx.update(gradient, state)
    return optax.apply_updates(params, updates), state, value


for _ in range(3):
    params, state, value = step(params, state)
print(value)
