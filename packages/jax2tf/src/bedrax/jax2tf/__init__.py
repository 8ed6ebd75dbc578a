"""Conversion to TensorFlow: `convert`."""

import os

from bedrax.core import source
from bedrax.jax2tf.call import PolyShape
from bedrax.jax2tf.convert import convert
from bedrax.jax2tf.flags import DEFAULT_NATIVE_SERIALIZATION
from bedrax.jax2tf.inspection import (
    DisabledSafetyCheck,
    PartitionsOrReplicated,
    dtype_of_val,
    eval_polymorphic_shape,
    get_thread_local_state_call_tf_concrete_function_list,
    inside_call_tf,
    preprocess_arg_tf,
    split_to_logical_devices,
)

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__all__ = [
    "DEFAULT_NATIVE_SERIALIZATION",
    "DisabledSafetyCheck",
    "PartitionsOrReplicated",
    "PolyShape",
    "convert",
    "dtype_of_val",
    "eval_polymorphic_shape",
    "get_thread_local_state_call_tf_concrete_function_list",
    "inside_call_tf",
    "preprocess_arg_tf",
    "split_to_logical_devices",
]
