"""`jax._src.xla_bridge`: what Chex and Keras need of it."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
