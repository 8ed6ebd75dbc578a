"""`jax.experimental.array_serialization.pytree_serialization`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.processes.tree_io": ("load", "load_pytreedef", "nonblocking_load", "nonblocking_save", "save")}
)
