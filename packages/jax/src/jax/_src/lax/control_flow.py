"""`jax._src.lax.control_flow`: names that PyTensor (fori_loop) and Oryx use."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
