"""Batching: `vmap` and the rules that read each primitive as an operation on a batch."""

import os

import bedrax.numpy_backend  # noqa: F401  # what evaluates where nobody else does
from bedrax.batching.api import vmap
from bedrax.batching.custom_vmap import custom_vmap, sequential_vmap
from bedrax.batching.tables import AxisData, batch_rules
from bedrax.core import source

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__all__ = ["AxisData", "batch_rules", "custom_vmap", "sequential_vmap", "vmap"]
