"""Export for the browser: the network as two graphs. A page can train the second one further."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from flax import linen as nn
from jax.experimental import jax2tf

from examples.tfjs import packed

from .. import training
from ..data import Digits
from ..linen_model import CNN, MODEL

HIDDEN, LAST = "Dense_0", "Dense_1"  # Flax's names of the layers that the page trains
REHEARSED = 10  # digits of each class that the page trains on together with the new one
BATCH = 7  # test digits whose gradient is compared


def features(params, stats, images):
    """The result of the convolutions for images: `(n, 8, 8, 1)` to `(n, 256)`."""
    variables = {"params": params, "batch_stats": stats}
    _, kept = CNN().apply(variables, images, train=False, mutable=["intermediates"])
    return kept["intermediates"]["features"][0]


def head(features, hidden_kernel, hidden_bias, kernel, bias):
    """The two dense layers: `logits` and `probs`, both `(n, 10)`."""
    hidden = nn.Dense(64).apply({"params": {"kernel": hidden_kernel, "bias": hidden_bias}}, features)
    logits = nn.Dense(10).apply({"params": {"kernel": kernel, "bias": bias}}, nn.relu(hidden))
    return {"logits": logits, "probs": jax.nn.softmax(logits)}


def head_params(params) -> dict:
    """The arguments of `head` after the first. TF.js differentiates with respect to arguments, not to constants of a
    graph."""
    hidden, last = params[HIDDEN], params[LAST]
    names = "hidden_kernel", "hidden_bias", "kernel", "bias"
    return dict(zip(names, (hidden["kernel"], hidden["bias"], last["kernel"], last["bias"]), strict=True))


def function(fun, **shapes) -> tf.Module:
    """A module whose `call` is `fun`, in operations of TF.js. None stands for any size `b`."""
    converted = jax2tf.convert(
        fun,
        polymorphic_shapes=[f"({', '.join('b' if n is None else str(n) for n in shape)})" for shape in shapes.values()],
        native_serialization=False,
        enable_xla=False,  # TF.js has TensorFlow's own operations, and none of XLA's
        # A check formats its message as a string, and TF.js has no strings.
        native_serialization_disabled_checks=[jax2tf.DisabledSafetyCheck.shape_assertions()],
    )
    specs = [tf.TensorSpec(shape, tf.float32, name) for name, shape in shapes.items()]
    module = tf.Module()
    module.call = tf.function(converted, autograph=False, input_signature=specs)
    return module


def modules(params, stats) -> dict[str, tf.Module]:
    """The two graphs, by the names of their folders."""
    return {
        "features": function(lambda images: features(params, stats, images), images=(None, 8, 8, 1)),
        "head": function(head, features=(None, 256), **{n: x.shape for n, x in head_params(params).items()}),
    }


def save(module: tf.Module, path: Path) -> None:
    """Write the module as a SavedModel with `call` as its serving signature."""
    tf.saved_model.save(module, str(path), signatures=module.call.get_concrete_function())


def page_data(digits: Digits, params) -> dict:
    """The data of the page besides the graphs: the layers that it trains, digits to rehearse, digits to test on."""
    rehearsed = np.concatenate([np.flatnonzero(digits.train_labels == k)[:REHEARSED] for k in range(10)])
    return {name: packed(array) for name, array in head_params(params).items()} | {
        "rehearsed_images": packed(digits.train_images[rehearsed]),
        "rehearsed_labels": packed(digits.train_labels[rehearsed]),
        "test_images": packed(digits.test_images),
        "test_labels": packed(digits.test_labels),
    }


def expected(digits: Digits, params, stats) -> dict:
    """The results here for the test digits, and a gradient with respect to `head_params`: of the mean loss of the first
    few digits against *the next* digit (a trained network has hardly any gradient towards the right digit)."""
    known = features(params, stats, digits.test_images[:BATCH])
    targets = (digits.test_labels[:BATCH] + 1) % 10

    def loss(given):
        logits = head(known, **given)["logits"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(BATCH), targets])

    probs = training.predict(MODEL, params, stats, digits.test_images)
    gradients = jax.grad(loss)(head_params(params))
    return {"batch": BATCH, "probs": packed(probs), "gradients": {name: packed(x) for name, x in gradients.items()}}


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
