"""No names: a call returns its results, so no store keeps them for later look-ups."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {})
