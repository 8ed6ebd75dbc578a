"""`jax._src.pjit`: names that Quax and Oryx use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.core.jitting": ("jit_p",)})
