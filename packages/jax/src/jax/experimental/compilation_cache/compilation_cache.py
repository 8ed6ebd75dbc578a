"""`jax.experimental.compilation_cache.compilation_cache`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.xla_backend.services": ("reset_cache", "set_cache_dir")})
