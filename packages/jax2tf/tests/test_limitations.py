"""The limitations that tools/tensorflow_page.py lists hold. If one does not hold, its row is to be removed."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import pytest
import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.call_tf import call_tf
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.jax2tf import convert, split_to_logical_devices
from bedrax.xla_backend import jit

X = np.array([1, 2, 3], np.float32)
VARIABLE = tf.Variable(1.0)


def graph(f, *specs, **options):
    return tf.function(convert(f, **options), autograph=False).get_concrete_function(*specs)


def gradient_of_a_loop(path):
    module = tf.Module()
    f = lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x)
    module.f = tf.function(convert(f), autograph=False, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, path, options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    x = tf.Variable(3.0)
    loaded = tf.saved_model.load(path)
    with tf.GradientTape() as tape:
        y = loaded.f(x)
    assert y.numpy() == 12
    tape.gradient(y, x)


# name of the row -> (what still fails, its error, words of the message)
LIMITATIONS = {
    "strings under jit": (
        lambda _: jit(call_tf(lambda x: tf.strings.length(tf.strings.format("{}", [x]))))(X), ValueError, "compil"),
    "values as shapes under jit": (
        lambda _: jit(call_tf(lambda x: x[tf.cast(x[0], tf.int32):]))(X), ValueError, "dynamic shape"),
    "shapes that depend on values under jit": (
        lambda _: jit(call_tf(lambda x: tf.cond(x[0] >= 0, lambda: x, lambda: x[1:])))(X), ValueError, "dynamic shape"),
    "writing to variables under jit": (
        lambda _: jit(call_tf(VARIABLE.assign_add))(X[0]), ValueError, "writes to variables"),
    "ordered calls under jit": (
        lambda _: jit(call_tf(tf.sin, ordered=True))(X), NotImplementedError, "call_tf_graph"),
    "results of unknown sizes": (
        lambda _: graph(call_tf(lambda x: tf.boolean_mask(x, x > 0)), tf.TensorSpec([None], tf.float32), polymorphic_shapes=["b"]), ValueError, "output_shape_dtype"),
    "nonlinear sizes": (
        lambda _: convert(jnp.sin, polymorphic_shapes=["a * a"])(np.ones(4, np.float32)), ValueError, "Cannot solve"),
    "underdetermined sizes": (
        lambda _: convert(jnp.sin, polymorphic_shapes=["a + b"])(np.ones(4, np.float32)), ValueError, "Cannot solve"),
    "unknown sizes against numbers": (
        lambda _: convert(lambda x, y: x + y, polymorphic_shapes=["v", "4"])(np.ones(4, np.float32), np.ones(4, np.float32)), TypeError, "shapes"),
    "gradients of while loops": (gradient_of_a_loop, tf.errors.InvalidArgumentError, "no reverse-mode derivative"),
    "sharding without a graph": (
        lambda _: split_to_logical_devices(tf.ones([4]), [2]), Exception, "XlaSharding|eager"),
    "enable_xla=False natively": (
        lambda _: convert(jnp.sin, enable_xla=False, native_serialization=True), ValueError, "enable_xla"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITATIONS)
def test_holds(name, tmp_path):
    attempt, error, words = LIMITATIONS[name]
    with pytest.raises(error, match=words):
        attempt(str(tmp_path))


def test_the_advice_of_the_rows_works():
    """The advice of the rows works."""
    f = lambda x: call_tf(tf.sin, output_shape_dtype=ShapeDtypeStruct(x.shape, x.dtype))(x)
    g = graph(f, tf.TensorSpec([None], tf.float32), polymorphic_shapes=["b"])
    np.testing.assert_allclose(g(tf.constant(X)), np.sin(X), rtol=1e-6)
    assert convert(lambda x: jnp.reshape(x, (2, -1)), polymorphic_shapes=["2*b"])(np.ones(4, np.float32)).shape == (
        2,
        2,
    )
