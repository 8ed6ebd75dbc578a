"""`jax.scipy.sparse`: iterative solution of linear equations."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("linalg",)})
