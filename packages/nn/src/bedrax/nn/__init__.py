"""Activations, attention and initializers for neural networks (`jax.nn`), each loaded on first use."""

import bedrax.numpy_backend  # noqa: F401  # the default executor
from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
