"""`jax._src.api_util`: names that e3nn-jax and Oryx use."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
