"""`jax._src.random`: a module that Quax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("threefry2x32",)})
