"""`jax._src.lax.control_flow`: what PyTensor (fori_loop) and Oryx need of it."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
