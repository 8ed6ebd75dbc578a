"""No names: a TPU needs no preparation by the module."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {})
