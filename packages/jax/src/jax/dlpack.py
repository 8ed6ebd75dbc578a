"""`jax.dlpack`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.xla_backend.dlpack": ("from_dlpack", "is_supported_dtype")})
