"""`jax.experimental.array_serialization.serialization`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.processes.array_serialization": (
            "AsyncManager",
            "BarrierTimeoutError",
            "GlobalAsyncCheckpointManager",
            "GlobalAsyncCheckpointManagerBase",
        ),
        "bedrax.processes.tensorstore_specs": ("TS_CONTEXT",),
        "bedrax.processes.tensorstore_io": (
            "async_deserialize",
            "async_serialize",
            "get_tensorstore_spec",
            "is_remote_storage",
            "run_deserialization",
            "run_serialization",
        ),
    },
)
