"""Export: the trained model as SavedModels, in both serializations, and as a TFLite file."""

from pathlib import Path

import jax
import tensorflow as tf
from jax.experimental import jax2tf

from . import training
from .model import Model

IMAGES = tf.TensorSpec([None, 8, 8, 1], tf.float32, name="images")
ANY_BATCH = [None, None, "(b, 8, 8, 1)"]  # parameters and statistics keep the shapes they have


def convert(model: Model, params, stats, *, native: bool, with_gradient: bool, **options) -> tf.Module:
    """A TensorFlow module: its `predict` is the model, its `params` are `tf.Variable`s."""
    predict = jax2tf.convert(
        lambda params, stats, images: training.predict(model, params, stats, images),
        polymorphic_shapes=ANY_BATCH,
        native_serialization=native,
        with_gradient=with_gradient,
        **options,
    )
    module = tf.Module()
    module.params = jax.tree.map(tf.Variable, params)
    module.stats = jax.tree.map(lambda array: tf.Variable(array, trainable=False), stats)
    module.predict = tf.function(
        lambda images: predict(module.params, module.stats, images), autograph=False, input_signature=[IMAGES]
    )
    return module


def save(module: tf.Module, path: Path) -> None:
    """Write the module as a SavedModel that keeps its gradient."""
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(path), options=options)


def save_plain(model: Model, params, stats, path: Path) -> None:
    """Write the model as a SavedModel of TensorFlow's own operations."""
    save(convert(model, params, stats, native=False, with_gradient=True), path)


def save_native(model: Model, params, stats, path: Path) -> None:
    """Write the model as a SavedModel that holds a program of StableHLO."""
    save(convert(model, params, stats, native=True, with_gradient=True), path)


def save_tflite(model: Model, params, stats, path: Path) -> None:
    """Write the model as a TFLite file: inference only, and TFLite's own ops only (`enable_xla=False`)."""
    module = convert(model, params, stats, native=False, with_gradient=False, enable_xla=False)
    concrete = module.predict.get_concrete_function()
    path.write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([concrete], module).convert())
