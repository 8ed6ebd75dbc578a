"""`jax._src.public_test_util`: what tinygp needs of it."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
