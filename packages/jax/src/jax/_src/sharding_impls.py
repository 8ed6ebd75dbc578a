"""`jax._src.sharding_impls`: names that jaxlib (when it imports an array by DLPack), jaxns and BrainState use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.sharding": ("make_single_device_sharding",),
        # jaxns: canonicalize_sharding; BrainState: UNSPECIFIED
        "bedrax.extend.shardings": ("UNSPECIFIED", "canonicalize_sharding"),
    },
)
