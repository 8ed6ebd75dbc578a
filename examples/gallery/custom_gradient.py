"""A custom gradient: learning through a step.

A rounded value has derivative zero, so a gradient learns nothing. A rule passes the gradient through the rounding.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

X = jnp.linspace(-1, 1, 200)
TARGET = jnp.sin(3 * X)


@jax.custom_jvp
def quantized(x):
    return jnp.round(4 * x) / 4


@quantized.defjvp
def pass_through(primals, tangents):
    return quantized(*primals), tangents[0]


def model(params, rounding):
    return rounding(params @ jnp.stack([X**n for n in range(6)]))


def train(rounding):
    loss = lambda params: jnp.mean((model(params, rounding) - TARGET) ** 2)

    def step(params, _):
        value, gradient = jax.value_and_grad(loss)(params)
        return params - 0.3 * gradient, value

    params, losses = jax.jit(lambda start: jax.lax.scan(step, start, length=600))(jnp.zeros(6))
    return np.asarray(model(params, rounding)), np.asarray(losses)


def main():
    plain = train(lambda x: jnp.round(4 * x) / 4)
    repaired = train(quantized)
    print(f"loss without the rule {plain[1][-1]:.3f}, with it {repaired[1][-1]:.3f}")
    return plain, repaired


def picture(data):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(5, 4))).subplots()
    axes.plot(X, TARGET, color="C7", ls="--", label="target")
    axes.plot(X, data[0][0], color="C1", label="without the rule")
    axes.plot(X, data[1][0], color="C0", lw=2, label="with the rule")
    axes.legend(fontsize=9)
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
