"""The kernel: types, primitives, tracing, the jaxpr and its passes."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
