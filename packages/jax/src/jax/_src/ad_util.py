"""`jax._src.ad_util`: names that Lineax uses."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
