"""Conversion to TensorFlow: `convert`."""

import os

from bedrax.core import source
from bedrax.jax2tf.convert import PolyShape, convert

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__all__ = ["PolyShape", "convert"]
