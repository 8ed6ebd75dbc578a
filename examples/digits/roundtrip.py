"""Import: a SavedModel called from JAX, inside `jit` and under `grad`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import tensorflow as tf
from jax.experimental import jax2tf


def run(path: Path, images, targets) -> dict:
    """Probabilities by `jit(call_tf(...))`, and the gradient of the log-likelihood of the target classes with respect
    to the images."""
    model = tf.saved_model.load(str(path))
    # The saved function takes any batch, so the size of its result is unknown unless it is given.
    shape = jax.ShapeDtypeStruct((len(images), 10), jnp.float32)
    predict = jax2tf.call_tf(model.predict, output_shape_dtype=shape, has_side_effects=False)

    def score(images):
        return jnp.log(predict(images)[jnp.arange(len(targets)), targets]).sum()

    return {"probs7": jax.jit(predict)(images), "grad0": jax.jit(jax.grad(score))(images)}
