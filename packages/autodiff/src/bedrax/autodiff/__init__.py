"""Differentiation: forward mode, linearization, transposition, and functions with rules of their own."""

import os

import bedrax.numpy_backend  # noqa: F401  # the default backend: it evaluates operations unless another backend does
from bedrax.core import source
from bedrax.core.lazy import attach_stub

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
