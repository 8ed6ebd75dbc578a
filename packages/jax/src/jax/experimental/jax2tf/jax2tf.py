"""`jax.experimental.jax2tf.jax2tf`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.jax2tf": (
            "DEFAULT_NATIVE_SERIALIZATION",
            "DisabledSafetyCheck",
            "PolyShape",
            "convert",
            "dtype_of_val",
            "PartitionsOrReplicated",
            "eval_polymorphic_shape",
            "get_thread_local_state_call_tf_concrete_function_list",
            "inside_call_tf",
            "preprocess_arg_tf",
            "split_to_logical_devices",
        ),
        "bedrax.call_tf": ("TfVal",),
        "bedrax.extend.source_info": ("NameStack",),
    },
    renamed={"numpy": {"DType": "dtype"}, "builtins": {"PrecisionType": "int"}},
    extra="bedrax[tf]",
)
