"""`jax.scipy.cluster`: vector quantization."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("vq",)})
