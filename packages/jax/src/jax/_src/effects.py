"""`jax._src.effects`: names that Oryx uses, and the sets in which libraries register effects of their own."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
