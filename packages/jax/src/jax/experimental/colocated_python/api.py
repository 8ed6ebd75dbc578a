"""`jax.experimental.colocated_python.api`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.processes.colocated": (
        "colocated_cpu_devices", "colocated_python", "colocated_python_class",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.processes.colocated import (
        colocated_cpu_devices as colocated_cpu_devices, colocated_python as colocated_python,
        colocated_python_class as colocated_python_class,
    )  # fmt: skip
