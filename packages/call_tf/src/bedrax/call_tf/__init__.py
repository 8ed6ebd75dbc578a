"""TensorFlow functions as operations: `call_tf`."""

import os
from typing import Any

from bedrax.call_tf.api import UnspecifiedOutputShapeDtype, call_tf
from bedrax.call_tf.lowering import (
    add_to_call_tf_concrete_function_list,
    check_tf_result,
    emit_tf_embedded_graph_custom_call,
)
from bedrax.call_tf.primitive import (
    CallTfEffect,
    CallTfOrderedEffect,
    call_tf_effect,
    call_tf_ordered_effect,
    call_tf_p,
)
from bedrax.core import source

TfConcreteFunction = Any
TfVal = Any

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__all__ = [
    "CallTfEffect",
    "CallTfOrderedEffect",
    "TfConcreteFunction",
    "TfVal",
    "UnspecifiedOutputShapeDtype",
    "add_to_call_tf_concrete_function_list",
    "call_tf",
    "call_tf_effect",
    "call_tf_ordered_effect",
    "call_tf_p",
    "check_tf_result",
    "emit_tf_embedded_graph_custom_call",
]
