"""`jax._src.xla_bridge`: names that Chex and Keras use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # Keras, ops.nn_test
        # Chex, fake: the started backends
        "bedrax.xla_backend.clients": (
            "backends",
            "default_backend",
            "device_count",
            "devices",
            "get_backend",
            "local_devices",
            "process_count",
            "process_index",
            "backends_are_initialized",  # Flax, flax_gspmd
        )
    },
    renamed={"bedrax.xla_backend.clients": {"_backends": "_clients"}},
)
