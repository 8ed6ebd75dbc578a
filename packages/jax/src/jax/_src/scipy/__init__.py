"""`jax._src.scipy`: a module that libraries use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("special",)})
