"""`jax._src.checkify`: names that Flax uses."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
