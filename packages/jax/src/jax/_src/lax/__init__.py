"""`jax._src.lax`: names that Oryx, PyTensor and the public guide to primitives use."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
