"""`jax.experimental.colocated_python.serialization`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.processes.colocated": ("DeviceList",)},
    renamed={"jax._src": {"xb": "xla_bridge"}},  # Orbax, multihost/colocated_transport.py
)
