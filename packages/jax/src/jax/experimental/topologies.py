"""`jax.experimental.topologies`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.xla_backend.door.runtime": ("Device",), "bedrax.xla_backend.topologies": "*"}
)
