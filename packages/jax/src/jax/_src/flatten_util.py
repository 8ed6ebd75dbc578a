"""`jax._src.flatten_util`: names that BlackJAX uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.numpy.flatten_util": ("ravel_pytree",)})
