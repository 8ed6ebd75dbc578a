"""`jax._src.lax`: names that Oryx, PyTensor and the public guide to primitives use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("control_flow", "lax")})
