"""`jax.extend`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".": (
            "backend",
            "core",
            "ifrt_programs",
            "linear_util",
            "lowering",
            "mlir",
            "pallas",
            "random",
            "sharding",
            "source_info_util",
            "xla",
        )
    },
)
