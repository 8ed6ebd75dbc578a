"""`jax.experimental.jax2tf.call_tf`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.call_tf": (
        "CallTfEffect", "CallTfOrderedEffect", "TfConcreteFunction", "TfVal", "UnspecifiedOutputShapeDtype",
        "add_to_call_tf_concrete_function_list", "call_tf", "call_tf_effect", "call_tf_ordered_effect",
        "call_tf_p", "check_tf_result", "emit_tf_embedded_graph_custom_call",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.call_tf import (
        CallTfEffect as CallTfEffect, CallTfOrderedEffect as CallTfOrderedEffect,
        TfConcreteFunction as TfConcreteFunction, TfVal as TfVal,
        UnspecifiedOutputShapeDtype as UnspecifiedOutputShapeDtype,
        add_to_call_tf_concrete_function_list as add_to_call_tf_concrete_function_list, call_tf as call_tf,
        call_tf_effect as call_tf_effect, call_tf_ordered_effect as call_tf_ordered_effect,
        call_tf_p as call_tf_p, check_tf_result as check_tf_result,
        emit_tf_embedded_graph_custom_call as emit_tf_embedded_graph_custom_call,
    )  # fmt: skip
