from bedrax.pytree import *
from bedrax.pytree import (
    _registry as _registry,  # Flax, nnx.graphlib
    flatten_one_level as flatten_one_level,  # Orbax
)
