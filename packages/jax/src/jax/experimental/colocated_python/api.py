"""`jax.experimental.colocated_python.api`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.processes.colocated": ("colocated_cpu_devices", "colocated_python", "colocated_python_class")}
)
