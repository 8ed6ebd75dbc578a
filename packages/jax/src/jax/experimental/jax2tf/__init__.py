"""`jax.experimental.jax2tf`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # a module and a function: the function stays
        ".call_tf": ("call_tf",),
        "bedrax.jax2tf": (
            "DisabledSafetyCheck",
            "PolyShape",
            "convert",
            "dtype_of_val",
            "eval_polymorphic_shape",
            "split_to_logical_devices",
        ),
        ".": ("jax2tf",),
    },
    extra="bedrax[tf]",
)
