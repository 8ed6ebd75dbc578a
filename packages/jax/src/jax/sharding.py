"""`jax.sharding`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.parallel": (
            "AbstractDevice",
            "AbstractMesh",
            "AxisType",
            "ManualAxisType",
            "Mesh",
            "UnreducedKind",
            "PartitionSpec",
            "auto_axes",
            "explicit_axes",
            "get_abstract_mesh",
            "get_mesh",
            "no_collectives",
            "reshard",
            "set_mesh",
            "use_abstract_mesh",
        ),
        "bedrax.xla_backend.sharding": (
            "NamedSharding",
            "Sharding",
            "SingleDeviceSharding",
            "make_single_device_sharding",
        ),
    },
)
