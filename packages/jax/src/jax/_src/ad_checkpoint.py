"""`jax._src.ad_checkpoint`: names that Oryx uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.lax.primitives.calls": ("name_p", "remat_p")})
