"""Batching: `vmap` and the rules that read each primitive as an operation on a batch."""

import os

import bedrax.numpy_backend  # noqa: F401  # it evaluates, unless a backend of a higher rank is installed
from bedrax.core import offers, source
from bedrax.core.lazy import attach

offers.offer("vmap", "bedrax.batching:vmap")
offers.offer("operations on bases", "bedrax.batching.elements:function_on_bases")
source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__getattr__, __dir__, __all__ = attach(
    __name__,
    {".api": ("vmap",), ".custom_batching": ("custom_vmap", "sequential_vmap"), ".tables": ("AxisData", "batch_rules")},
)
