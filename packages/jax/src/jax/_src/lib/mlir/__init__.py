"""`jax._src.lib.mlir`: MLIR's own Python bindings."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("dialects", "ir")})
