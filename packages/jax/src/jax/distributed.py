"""`jax.distributed`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.processes.distributed": (
        "initialize", "is_initialized", "shutdown",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.processes.distributed import (
        initialize as initialize, is_initialized as is_initialized, shutdown as shutdown,
    )  # fmt: skip
