"""`jax._src.scipy.special`: names that jaxctx uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.scipy.special": ("gammaln", "logsumexp")})
