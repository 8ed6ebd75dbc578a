"""`jax.extend.mlir`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.door.mlir": (
            "deserialize_portable_artifact",
            "hlo_to_stablehlo",
            "refine_polymorphic_shapes",
            "serialize_portable_artifact",
        ),
        "bedrax.xla_backend.mlir.rules": ("lower_with_sharding_in_types",),
        ".": ("dialects", "ir", "passmanager"),
    },
)
