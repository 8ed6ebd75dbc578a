"""Other parts of TensorFlow with converted functions: serving signatures, its command line, tf.data, Keras."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import bedrax.numpy as jnp
from bedrax.jax2tf import convert

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
X = np.linspace(0, 1, 8, dtype=np.float32).reshape(2, 4)


def model(w, x):
    return {"scores": jnp.tanh(x @ w), "best": jnp.argmax(x @ w, axis=-1)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    f = convert(model, polymorphic_shapes=[None, "(batch, _)"])
    module = tf.Module()
    module.w = tf.Variable(W)
    module.f = tf.function(
        lambda x: f(module.w, x), autograph=False, input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")]
    )
    module.__call__ = module.f
    tf.saved_model.save(
        module,
        str(path),
        signatures=module.f.get_concrete_function(),
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=True),
    )
    return path


def test_serving_signature(saved):
    """As TF Serving calls it: by the names of inputs and outputs."""
    signature = tf.saved_model.load(str(saved)).signatures["serving_default"]
    assert set(signature.structured_outputs) == {"scores", "best"}
    found = signature(x=tf.constant(X))
    np.testing.assert_allclose(found["scores"], np.tanh(X @ W), rtol=1e-6)
    np.testing.assert_array_equal(found["best"], (X @ W).argmax(-1))


def test_session_of_the_graph(saved):
    """As TensorFlow's C++ loader runs it: a session of the frozen names, without objects of Python."""
    graph = tf.Graph()
    with tf.compat.v1.Session(graph=graph) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], str(saved))
        signature = meta.signature_def["serving_default"]
        found = session.run(signature.outputs["scores"].name, {signature.inputs["x"].name: X})
    np.testing.assert_allclose(found, np.tanh(X @ W), rtol=1e-6)


def _command(*arguments):
    tool = Path(sys.executable).with_name("saved_model_cli")
    if not tool.exists():
        pytest.skip("saved_model_cli is not installed")
    run = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def test_command_line_shows(saved):
    """The data for a client of TF Serving: names, dtypes, and the unknown batch size."""
    text = _command("show", "--dir", saved, "--tag_set", "serve", "--signature_def", "serving_default")
    printed = " ".join(text.split())
    assert "inputs['x'] tensor_info: dtype: DT_FLOAT shape: (-1, 4) name: serving_default_x:0" in printed
    assert "outputs['scores'] tensor_info: dtype: DT_FLOAT shape: (-1, 3)" in printed
    assert "outputs['best'] tensor_info: dtype: DT_INT32 shape: (-1)" in printed
    assert "Method name is: tensorflow/serving/predict" in printed


def test_command_line(saved):
    text = _command(
        "run",
        "--dir",
        saved,
        "--tag_set",
        "serve",
        "--signature_def",
        "serving_default",
        "--input_exprs",
        "x=[[0.0, 0.0, 0.0, 0.0]]",
    )
    assert "scores" in text and "[[0. 0. 0.]]" in text


def test_pipeline():
    f = convert(lambda x: jnp.sum(x**2, axis=-1), polymorphic_shapes=["b, _"])
    rows = np.arange(28, dtype=np.float32).reshape(7, 4)
    found = list(tf.data.Dataset.from_tensor_slices(rows).batch(3).map(f, num_parallel_calls=2))
    assert [len(x) for x in found] == [3, 3, 1]
    np.testing.assert_allclose(np.concatenate(found), (rows**2).sum(-1))


def test_keras_layer(saved):
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another backend")
    layer = keras.layers.TFSMLayer(str(saved), call_endpoint="serving_default")
    np.testing.assert_allclose(layer(X)["scores"], np.tanh(X @ W), rtol=1e-6)
    inputs = keras.Input((4,))
    whole = keras.Model(inputs, keras.layers.Dense(2)(layer(inputs)["scores"]))
    assert whole.predict(X, verbose=0).shape == (2, 2)


def test_keras_trains_the_layer(saved):
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another backend")
    layer = keras.layers.TFSMLayer(str(saved), call_endpoint="serving_default", trainable=True)
    inputs = keras.Input((4,))
    outputs = keras.layers.Dense(1)(layer(inputs)["scores"])
    whole = keras.Model(inputs, outputs)
    (weights,) = layer.trainable_weights
    before = np.asarray(weights)
    # Of optimizers with state Keras 3 makes scopes that have the names of variables, which `:` ends.
    whole.compile(keras.optimizers.SGD(0.1), "mse")
    losses = whole.fit(X, np.array([[1.0], [-1.0]], np.float32), epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert np.abs(np.asarray(weights) - before).max() > 0.01


def test_trained_after_loading(saved):
    """As `hub.load` and `hub.KerasLayer` use it: load, call, train its variables."""
    loaded = tf.saved_model.load(str(saved))
    before = loaded.w.numpy()
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((loaded.f(tf.constant(X))["scores"] - 1.0) ** 2)
        loaded.w.assign_sub(0.5 * tape.gradient(loss, loaded.w))
    after = tf.reduce_mean((loaded.f(tf.constant(X))["scores"] - 1.0) ** 2)
    assert float(after) < float(np.mean((np.tanh(X @ before) - 1) ** 2))
