"""`jax.experimental.array_serialization.serialization`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.processes.array_serialization": (
        "AsyncManager", "BarrierTimeoutError", "GlobalAsyncCheckpointManagerBase",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.processes.array_serialization import (
        AsyncManager as AsyncManager, BarrierTimeoutError as BarrierTimeoutError,
        GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
    )  # fmt: skip
