"""Export to a SavedModel in the form of TensorFlow Hub.

Hub calls the object itself, and reads `variables`, `trainable_variables` and `regularization_losses`. The model is a
polynomial that was fitted here; TensorFlow then trains it further.
"""

import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf

X = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
Y = np.sin(3 * X)


def model(params, x):
    return (x ** jnp.arange(6.0)) @ params["weights"] + params["bias"]


def main():
    loss = lambda params: jnp.mean((model(params, X) - Y) ** 2)
    params = {"weights": jnp.zeros((6, 1)), "bias": jnp.zeros(1)}
    step = jax.jit(lambda params: jax.tree.map(lambda p, g: p - 0.2 * g, params, jax.grad(loss)(params)))
    for _ in range(30):
        params = step(params)

    hub = tf.train.Checkpoint()
    hub.parameters = jax.tree.map(tf.Variable, params)
    hub.trainable_variables = hub.variables = list(hub.parameters.values())
    hub.regularization_losses = []
    converted = jax2tf.convert(model, polymorphic_shapes=[None, "(b, 1)"], native_serialization=False)
    signature = [tf.TensorSpec([None, 1], tf.float32, "x")]
    hub.__call__ = tf.function(lambda x: converted(hub.parameters, x), autograph=False, input_signature=signature)
    folder = tempfile.mkdtemp()
    tf.saved_model.save(hub, folder, options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))

    layer = tf.saved_model.load(folder)  # without any of the above; `hub.KerasLayer(folder)` does the same
    first = layer(X).numpy()
    np.testing.assert_allclose(first, model(params, X), atol=1e-5)
    for _ in range(300):
        with tf.GradientTape() as tape:
            value = tf.reduce_mean((layer(X) - Y) ** 2)
        for variable, gradient in zip(layer.variables, tape.gradient(value, layer.variables), strict=True):
            variable.assign_sub(0.2 * gradient)
    print(f"loss {float(loss(params)):.4f} at the export, {float(value):.4f} after training in TensorFlow")
    return first, layer(X).numpy(), float(loss(params)), float(value)


def picture(data):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(5, 4))).subplots()
    axes.plot(X, Y, color="C7", ls="--", label="target")
    axes.plot(X, data[0], color="C1", label="as it was exported")
    axes.plot(X, data[1], color="C0", lw=2, label="trained further in TensorFlow")
    axes.legend(fontsize=9)
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
