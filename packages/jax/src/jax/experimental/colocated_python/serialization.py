"""`jax.experimental.colocated_python.serialization`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.processes.colocated": (
        "DeviceList",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.processes.colocated import (
        DeviceList as DeviceList,
    )  # fmt: skip
