"""`jax.experimental.colocated_python.obj`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
