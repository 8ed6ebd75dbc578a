"""Internals that well-known libraries reach for; the stub of each module says who needs what."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
