"""`jax.experimental.array_serialization.tensorstore_impl`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.processes.tensorstore_io": ("async_deserialize", "async_serialize", "get_tensorstore_spec"),
        "bedrax.processes.tensorstore_specs": (
            "Future",
            "Transaction",
            "combine_kvstores",
            "estimate_read_memory_footprint",
            "is_tensorstore_spec_leaf",
            "merge_nested_ts_specs",
            "verify_tensorstore_spec",
        ),
    },
)
