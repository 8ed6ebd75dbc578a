"""`jax._src.sharding_impls`: a name that jaxlib looks up when it imports an array by DLPack."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.xla_backend.sharding": ("make_single_device_sharding",)})
