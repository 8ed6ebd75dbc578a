"""`jax._src.test_util`: names that the public guide to checkpointing, and tests of libraries, use."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
