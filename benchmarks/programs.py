"""The programs that are traced, lowered and converted. Runs inside the environments that are compared.

`PROGRAMS[name]()` returns `(make, args)`: `make()` gives a new function object every time (so that no cache
of a former trace applies), and `args` are arrays or `jax.ShapeDtypeStruct`s. Every function returns a scalar.
"""

import functools
import itertools

import jax
import jax.numpy as jnp


def fresh(function):
    """A maker of new functions that do what `function` does."""
    return lambda: lambda *args: function(*args)


def chain():
    """1,000 operations of jax.numpy, one after the other, on a vector."""

    def function(x):
        for _ in range(200):
            x = jnp.sin(x)
            x = x * 2.0
            x = x + x
            x = jnp.maximum(x, 0.5)
            x = x - 1.0
        return x[0]

    return fresh(function), (jax.ShapeDtypeStruct((8,), jnp.float32),)


def mlp():
    """A perceptron of four layers with a cross-entropy loss, written with jax.numpy."""
    sizes = (784, 512, 256, 128, 10)

    def function(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        return -(y * jax.nn.log_softmax(x @ w + b)).sum(-1).mean()

    params = [
        (jax.ShapeDtypeStruct((m, n), jnp.float32), jax.ShapeDtypeStruct((n,), jnp.float32))
        for m, n in itertools.pairwise(sizes)
    ]
    x, y = (jax.ShapeDtypeStruct((32, n), jnp.float32) for n in (784, 10))
    return fresh(function), (params, x, y)


def flax_program(model, x):
    """A Flax model's mean as a function of its variables and one input."""
    variables = jax.eval_shape(model.init, jax.random.key(0), x)
    return fresh(lambda variables, x: model.apply(variables, x).mean()), (variables, x)


def cnn():
    """A convolutional network in Flax Linen, with batch normalization at inference."""
    from flax import linen as nn

    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x):
            for features in 32, 64, 128:
                x = nn.Conv(features, (3, 3))(x)
                x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
                x = nn.max_pool(x, (2, 2), strides=(2, 2))
            x = x.reshape((x.shape[0], -1))
            return nn.Dense(10)(nn.relu(nn.Dense(256)(x)))

    return flax_program(CNN(), jax.ShapeDtypeStruct((8, 32, 32, 3), jnp.float32))


def transformer():
    """A transformer of six layers in Flax Linen."""
    from flax import linen as nn

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            x = x + nn.MultiHeadDotProductAttention(num_heads=8)(nn.LayerNorm()(x), mask=mask)
            y = nn.gelu(nn.Dense(1024)(nn.LayerNorm()(x)))
            return x + nn.Dense(x.shape[-1])(y)

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(1000, 256)(tokens) + nn.Embed(64, 256)(jnp.arange(tokens.shape[-1]))
            mask = nn.make_causal_mask(tokens)
            for _ in range(6):
                x = Layer()(x, mask)
            return nn.Dense(1000)(nn.LayerNorm()(x))

    return flax_program(Transformer(), jax.ShapeDtypeStruct((4, 64), jnp.int32))


PROGRAMS = {f.__name__: functools.cache(f) for f in (chain, mlp, cnn, transformer)}


def gradient(make):
    """The maker of gradients (by the first argument) of the functions that `make` makes."""
    return lambda: jax.grad(make())
