"""A function to a SavedModel, and its results from there."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf

w = jax.random.normal(jax.random.key(0), (4, 3))


def predict(x):
    return jax.nn.softmax(jnp.tanh(x @ w))


module = tf.Module()
module.predict = tf.function(
    jax2tf.convert(predict), autograph=False, input_signature=[tf.TensorSpec((2, 4), tf.float32)]
)
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(module, folder)
    found = tf.saved_model.load(folder).predict(np.ones((2, 4), np.float32))
np.testing.assert_allclose(found, predict(np.ones((2, 4), np.float32)), rtol=1e-5)
