"""`jax._src.tree_util`: needed by Flax (nnx.graphlib: _registry) and Orbax (flatten_one_level)."""

from bedrax.pytree import *
from bedrax.pytree import (
    _registry,
    flatten_one_level,
)
