"""`jax._src.earray`: a name that Flax uses."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
