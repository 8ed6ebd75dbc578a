"""The definitions that the text around the blocks of the mission documents assumes; `mission.toml` names them."""

import types

import jax
import jax.numpy as jnp
import numpy as np

# A regression with four rows of inputs.
inputs = jnp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
key = jax.random.PRNGKey(0)
W, b = jax.random.normal(key, (3,)), 0.1


def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2) + 1)


def predict(W, b, inputs):
    return sigmoid(jnp.dot(inputs, W) + b)


# A step of training. jit must be able to read its signature.
params, state = np.ones((8, 2)), np.ones((8, 3))


def update_fn(params, state):
    return params, state


def pair():
    """Two arrays that may be donated."""
    return (jax.device_put(np.ones((2, 3))), jax.device_put(np.ones((2, 3))))


def identity(x):
    return x


# The test case in whose methods some blocks stand.
self = types.SimpleNamespace(assertEqual=np.testing.assert_equal, assertAllClose=np.testing.assert_allclose)


def same(found, expected):
    """Check an array of float32 numbers against the documented ones."""
    np.testing.assert_array_equal(found, np.float32(expected))
