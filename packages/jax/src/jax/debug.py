"""`jax.debug`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.debugging.debugger": ("breakpoint",),
        "bedrax.lax.primitives.callbacks": ("DebugEffect", "OrderedDebugEffect"),
        "bedrax.lax.primitives.placement": ("inspect_array_sharding",),
        "bedrax.xla_backend.debugging.pictures": ("visualize_array_sharding", "visualize_sharding"),
    },
    renamed={
        "bedrax.lax.primitives.callbacks": {"callback": "debug_callback", "log": "debug_log", "print": "debug_print"}
    },
)
