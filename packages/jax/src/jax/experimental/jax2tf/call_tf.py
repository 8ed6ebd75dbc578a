"""`jax.experimental.jax2tf.call_tf`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.call_tf": (
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
        )
    },
    extra="bedrax[tf]",
)
