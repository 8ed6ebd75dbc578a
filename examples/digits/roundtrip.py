"""Back: what a SavedModel computes, called from JAX again, inside `jit` and under `grad`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import tensorflow as tf
from jax.experimental import jax2tf


def run(path: Path, images, targets) -> dict:
    """Probabilities by `jit(call_tf(...))`, and the gradient by the images of the log-likelihood of the
    target classes."""
    model = tf.saved_model.load(str(path))
    # The saved function takes any batch, so its result has an unknown size until told otherwise.
    shape = jax.ShapeDtypeStruct((len(images), 10), jnp.float32)
    predict = jax2tf.call_tf(model.predict, output_shape_dtype=shape, has_side_effects=False)

    def score(images):
        return jnp.log(predict(images)[jnp.arange(len(targets)), targets]).sum()

    return {"probs7": jax.jit(predict)(images), "grad0": jax.jit(jax.grad(score))(images)}
