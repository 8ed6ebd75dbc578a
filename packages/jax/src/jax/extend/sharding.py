"""`jax.extend.sharding`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.services": (
            "get_hlo_sharding_from_serialized_proto",
            "get_op_sharding_from_serialized_proto",
            "get_serialized_proto_from_hlo_sharding",
        ),
        "bedrax.xla_backend.sharding": ("GSPMDSharding",),
    },
)
