"""`jax._src.flatten_util`: names that BlackJAX uses."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
