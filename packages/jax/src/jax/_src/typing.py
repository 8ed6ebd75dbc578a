"""`jax._src.typing`: a name that jaxctx uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.core.typing": ("SupportsDType",)})
