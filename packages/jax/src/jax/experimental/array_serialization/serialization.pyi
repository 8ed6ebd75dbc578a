from bedrax.processes.array_serialization import (
    AsyncManager as AsyncManager, BarrierTimeoutError as BarrierTimeoutError,
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
)  # fmt: skip
