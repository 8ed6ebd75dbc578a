# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["tensorflow==2.21.*", "tf-keras==2.21.*", "tensorflow-hub==0.16.*", "setuptools<81"]
# ///
"""A use of a SavedModel with tensorflow_hub: ``uv run --script hub_consumer.py MODEL INPUTS.npz``

Runs in its own environment, without `jax`: `tf_keras` requires the package `tensorflow`. The last printed line is JSON.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
import tf_keras


def loss_of(model, x, y) -> float:
    return float(tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x))))


def changed(before, after) -> bool:
    return all(np.abs(a - b.numpy()).max() > 0 for a, b in zip(before, after, strict=True))


def fitted(path, x, y, trainable: bool) -> dict:
    """A Keras model with the loaded layer inside; it is fitted, saved, and restored."""
    layer = hub.KerasLayer(path, trainable=trainable, input_shape=x.shape[1:], output_key="scores")
    model = tf_keras.Sequential([layer, tf_keras.layers.Dense(2, activation="softmax")])
    weights = [w for w in layer.weights]
    before = [w.numpy() for w in weights]
    model.compile(tf_keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
    losses = model.fit(x, y, batch_size=16, epochs=8, verbose=0).history["loss"]
    target = os.path.join(os.path.dirname(path), f"fitted_{trainable}")
    model.save(target)
    again = tf_keras.models.load_model(target)
    return {
        "trainable": len(layer.trainable_weights),
        "changed": changed(before, weights),
        "kept": all(np.array_equal(a, b.numpy()) for a, b in zip(before, weights, strict=True)),
        "losses": [losses[0], losses[-1]],
        "read_back": float(np.abs(again.predict(x, verbose=0) - model.predict(x, verbose=0)).max()),
    }


def main(path: str, inputs: str) -> dict:
    with np.load(inputs) as given:
        x, y, scores = given["x"], given["y"], given["scores"]
    loaded = hub.load(path)
    by_size = [float(np.abs(loaded(tf.constant(x[:n]))["scores"].numpy() - scores[:n]).max()) for n in (1, 5, len(x))]
    signature = loaded.signatures["serving_default"](x=tf.constant(x))["scores"]
    rows = tf.data.Dataset.from_tensor_slices(x).batch(7).map(lambda rows: loaded(rows)["scores"], tf.data.AUTOTUNE)
    return {
        "jax": sorted({"jax", "jaxlib", "bedrax"} & set(sys.modules)),
        "loaded": max(by_size),
        "signature": float(np.abs(signature.numpy() - scores).max()),
        "pipeline": float(np.abs(np.concatenate(list(rows)) - scores).max()),
        "frozen": fitted(path, x, y, False),
        "tuned": fitted(path, x, y, True),
    }


if __name__ == "__main__":
    print("\n" + json.dumps(main(*sys.argv[1:])))
