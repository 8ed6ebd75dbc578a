"""`jax._src.lax.lax`: names that the public guide to primitives uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.lax": "*"})
