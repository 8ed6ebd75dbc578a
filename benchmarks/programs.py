"""The programs that are traced, lowered and converted. This module runs inside the compared environments.

`PROGRAMS[name]()`, or `PROGRAMS[name](batch)`, returns `(make, args)`. `make()` returns a new function object every
time,
so that no cache of a former trace applies. `args` are arrays or `jax.ShapeDtypeStruct`s. Every function returns a
scalar.
"""

import functools
import itertools

import jax
import jax.numpy as jnp


def fresh(function):
    """Returns a maker of new functions that compute the same as `function`."""
    return lambda: lambda *args: function(*args)


def chain():
    """1,000 successive operations of jax.numpy on a vector."""

    def function(x):
        for _ in range(200):
            x = jnp.sin(x)
            x = x * 2.0
            x = x + x
            x = jnp.maximum(x, 0.5)
            x = x - 1.0
        return x[0]

    return fresh(function), (jax.ShapeDtypeStruct((8,), jnp.float32),)


def mlp(batch=32):
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
    x, y = (jax.ShapeDtypeStruct((batch, n), jnp.float32) for n in (784, 10))
    return fresh(function), (params, x, y)


def cnn_model():
    """A convolutional network in Flax Linen, with batch normalization."""
    from flax import linen as nn

    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x, train=False):
            for features in 32, 64, 128:
                x = nn.Conv(features, (3, 3))(x)
                x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
                x = nn.max_pool(x, (2, 2), strides=(2, 2))
            x = x.reshape((x.shape[0], -1))
            return nn.Dense(10)(nn.relu(nn.Dense(256)(x)))

    return CNN()


def resnet_model(stages=(2, 2, 2, 2), classes=1000):
    """ResNet-18 in Flax Linen."""
    from flax import linen as nn

    class Block(nn.Module):
        features: int
        strides: tuple

        @nn.compact
        def __call__(self, x):
            norm = lambda **options: nn.BatchNorm(use_running_average=True, **options)
            y = nn.Conv(self.features, (3, 3), self.strides, use_bias=False)(x)
            y = nn.Conv(self.features, (3, 3), use_bias=False)(nn.relu(norm()(y)))
            y = norm(scale_init=nn.initializers.zeros)(y)
            if x.shape != y.shape:
                x = norm()(nn.Conv(self.features, (1, 1), self.strides, use_bias=False)(x))
            return nn.relu(x + y)

    class ResNet(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(64, (7, 7), (2, 2), padding=[(3, 3), (3, 3)], use_bias=False)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
            x = nn.max_pool(x, (3, 3), strides=(2, 2), padding="SAME")
            for i, blocks in enumerate(stages):
                for j in range(blocks):
                    x = Block(64 * 2**i, (2, 2) if i and not j else (1, 1))(x)
            return nn.Dense(classes)(x.mean((1, 2)))

    return ResNet()


def transformer_model(layers=6, width=256, vocabulary=1000):
    """A transformer in Flax Linen."""
    from flax import linen as nn

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            x = x + nn.MultiHeadDotProductAttention(num_heads=8)(nn.LayerNorm()(x), mask=mask)
            y = nn.gelu(nn.Dense(4 * width)(nn.LayerNorm()(x)))
            return x + nn.Dense(width)(y)

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(vocabulary, width)(tokens) + nn.Embed(64, width)(jnp.arange(tokens.shape[-1]))
            mask = nn.make_causal_mask(tokens)
            for _ in range(layers):
                x = Layer()(x, mask)
            return nn.Dense(vocabulary)(nn.LayerNorm()(x))

    return Transformer()


def flax_program(model, x):
    """The mean of a Flax model's result, as a function of its variables and one input."""
    variables = jax.eval_shape(model.init, jax.random.key(0), x)
    return fresh(lambda variables, x: model.apply(variables, x).mean()), (variables, x)


def cnn(batch=8):
    """The convolutional network at inference, on small images."""
    return flax_program(cnn_model(), jax.ShapeDtypeStruct((batch, 32, 32, 3), jnp.float32))


def resnet(batch=4):
    """ResNet-18 at inference."""
    return flax_program(resnet_model(), jax.ShapeDtypeStruct((batch, 64, 64, 3), jnp.float32))


def transformer(batch=4):
    """The transformer, of six layers."""
    return flax_program(transformer_model(), jax.ShapeDtypeStruct((batch, 64), jnp.int32))


def train_step(variables, predict):
    """A compiled step of Adam on a cross-entropy loss.

    Args:
      variables: initial ones; the collection "params" is trained.
      predict: `(variables, x) -> (logits, changed collections)`.
    """
    import optax

    optimizer = optax.adam(1e-3)

    @jax.jit
    def step(variables, state, x, labels):
        def loss(params):
            logits, changed = predict({**variables, "params": params}, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed

        (value, changed), gradient = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        updates, state = optimizer.update(gradient, state)
        return {"params": optax.apply_updates(variables["params"], updates), **changed}, state, value

    return step, (variables, optimizer.init(variables["params"]))


def cnn_step():
    """Training of the convolutional network: `(step, args)`."""
    model, x = cnn_model(), jax.random.normal(jax.random.key(0), (8, 32, 32, 3))
    variables = model.init(jax.random.key(1), x)
    step, state = train_step(variables, lambda v, x: model.apply(v, x, train=True, mutable=["batch_stats"]))
    return step, (*state, x, jnp.arange(8))


def transformer_step():
    """Training of a small transformer: `(step, args)`."""
    model, tokens = transformer_model(2, 64, 200), jnp.arange(256).reshape(8, 32) % 200
    step, state = train_step(model.init(jax.random.key(1), tokens), lambda v, x: (model.apply(v, x), {}))
    return step, (*state, tokens, (tokens + 1) % 200)


PROGRAMS = {f.__name__: functools.cache(f) for f in (chain, mlp, cnn, resnet, transformer)}
STEPS = {"cnn": cnn_step, "transformer": transformer_step}


def gradient(make):
    """Returns a maker of gradients, with respect to the first argument, of the functions from `make`."""
    return lambda: jax.grad(make())


def gradient_in_tensorflow(converted):
    """A TensorFlow function: the gradient of `converted` with respect to its first argument."""
    import tensorflow as tf

    def function(first, *rest):
        with tf.GradientTape() as tape:
            tape.watch(leaves := tf.nest.flatten(first))
            value = converted(first, *rest)
        return value, tape.gradient(value, leaves)

    return function
