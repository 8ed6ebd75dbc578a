"""`jax._src.state`: names that Flax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("types",)})
