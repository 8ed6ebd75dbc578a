"""`jax._src.sharding_impls`: a name that jaxlib looks up when it imports an array by DLPack."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
