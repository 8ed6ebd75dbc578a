"""`jax._src.lib`: names that Dynamiqs, Grain and the public guides use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.door.client": (
            "jax_mlir_ext",  # the tutorial Autodidax
            "jaxlib_extension_version",  # Grain
            "xla_client",  # Dynamiqs
        ),
        ".": ("mlir",),
    },
)
