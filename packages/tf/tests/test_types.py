"""Conversion of types to TensorFlow and back."""

import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pytest

from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


def test_tensorflow_is_imported_when_it_is_used():
    program = "import sys, bedrax.tf.types, bedrax.tf.tables; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["bool", "int8", "uint32", "int64", "bfloat16", "float16", "float64", "complex64"])
def test_dtypes_there_and_back(name):
    dtype = dtypes.as_dtype(name)
    assert types.tf_dtype(dtype).name == name
    assert types.numpy_dtype(types.tf_dtype(dtype)) == dtype
    value = types.constant(np.ones((2, 1)), dtype)
    assert (value.dtype.name, value.shape) == (name, (2, 1))


def test_dtypes_without_counterpart():
    with pytest.raises(TypeError, match="TensorFlow has no dtype for f8_e8m0fnu"):
        types.tf_dtype(dtypes.as_dtype("float8_e8m0fnu"))
    for dtype in (tf.string, tf.resource, tf.qint8):
        with pytest.raises(TypeError, match="have no counterpart"):
            types.numpy_dtype(dtype)


def test_tangents_of_integers_are_zeros_of_int32():
    assert types.constant(np.zeros(3, dtypes.float0)).dtype == tf.int32


def test_specifications():
    spec = types.tensor_spec(ShapedArray((2, 3), np.dtype(np.float32)))
    assert spec == tf.TensorSpec([2, 3], tf.float32)
