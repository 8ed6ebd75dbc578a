"""`jax.export`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.export": (
            "DisabledSafetyCheck",
            "Exported",
            "SymbolicScope",
            "default_export_platform",
            "deserialize",
            "export",
            "is_symbolic_dim",
            "maximum_supported_calling_convention_version",
            "minimum_supported_calling_convention_version",
            "register_namedtuple_serialization",
            "register_pytree_node_serialization",
            "symbolic_args_specs",
            "symbolic_dim_bounds",
            "symbolic_shape",
        )
    },
)
