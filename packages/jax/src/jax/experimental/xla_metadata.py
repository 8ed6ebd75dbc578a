"""`jax.experimental.xla_metadata`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.metadata": (
            "fuse_limit",
            "must_fuse_call",
            "set_xla_metadata",
            "xla_metadata_call",
            "xla_metadata_call2",
        )
    },
)
