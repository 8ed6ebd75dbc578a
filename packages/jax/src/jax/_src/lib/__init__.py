"""`jax._src.lib`: names that Dynamiqs, Grain and the public guides use."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
