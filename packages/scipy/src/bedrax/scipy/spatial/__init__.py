"""`jax.scipy.spatial`: rotations."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("transform",)})
