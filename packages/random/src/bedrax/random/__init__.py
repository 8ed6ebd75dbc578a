"""Random numbers without hidden state: keys and samplers, each loaded on first use."""

import bedrax.numpy  # noqa: F401  (the numbers have NumPy's methods)
from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
