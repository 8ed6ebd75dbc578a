"""NumPy evaluation: a rule for each primitive, and an executor that needs no compiler."""

import bedrax.lax  # noqa: F401  # the operators of arrays need the primitives
from bedrax.core import executors, offers
from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.numpy_backend.program_source": ("source_of",)})

offers.offer("NumPy rule of what is composed", "bedrax.numpy_backend.composed:composed")
executors.offer("bedrax.numpy_backend.executor", rank=0)
