"""A Flax language model on Python's own documentation.

The text ships with Python. A network with attention reads 32 bytes and predicts the next one.
"""

import sys
from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

TEXT = np.frombuffer("\n".join(topics.values()).encode("ascii", "ignore"), np.uint8) & 127
LENGTH = 32


class Model(nn.Module):
    @nn.compact
    def __call__(self, text):
        x = nn.Embed(128, 64)(text) + self.param("place", nn.initializers.normal(0.1), (LENGTH, 64))
        for _ in range(2):
            mask = nn.make_causal_mask(text)
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x), mask=mask)
            x = x + nn.Dense(64)(nn.gelu(nn.Dense(128)(nn.LayerNorm()(x))))
        return nn.Dense(128)(nn.LayerNorm()(x))


def main(steps=150):
    model, optimizer, draw = Model(), optax.adam(3e-3), np.random.default_rng(0)
    params = model.init(jax.random.key(0), jnp.zeros((1, LENGTH), int))
    state = optimizer.init(params)

    def loss(params, text):
        logits = model.apply(params, text[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, text[:, 1:]).mean()

    @jax.jit
    def step(params, state, text):
        value, gradient = jax.value_and_grad(loss)(params, text)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for _ in range(steps):
        starts = draw.integers(0, len(TEXT) - LENGTH - 1, (32, 1))
        text = TEXT[starts + np.arange(LENGTH + 1)].astype(np.int32)
        params, state, value = step(params, state, text)
        losses.append(float(value))
    print(f"loss per byte: {losses[0]:.2f} at first, {np.mean(losses[-10:]):.2f} after {steps} steps")
    return losses


def picture(losses):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(5, 4))).subplots()
    axes.plot(losses, lw=1.5)
    axes.set(xlabel="step", ylabel="loss per byte", ylim=(0, None))
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
