"""Internals that well-known libraries use. The stub of each module names the libraries."""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
