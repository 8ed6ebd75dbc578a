"""`jax._src.interpreters`: modules that libraries use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("ad", "batching", "mlir")})
