"""`jax._src.util`: names that optree uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.extend.api_util": ("safe_map", "safe_zip")})
