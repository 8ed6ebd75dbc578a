from bedrax.processes.array_serialization import (
    AsyncManager as AsyncManager,
    BarrierTimeoutError as BarrierTimeoutError,
    GlobalAsyncCheckpointManager as GlobalAsyncCheckpointManager,
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
)
from bedrax.processes.tensorstore_specs import TS_CONTEXT as TS_CONTEXT
from bedrax.processes.tensorstore_io import (
    async_deserialize as async_deserialize,
    async_serialize as async_serialize,
    get_tensorstore_spec as get_tensorstore_spec,
    is_remote_storage as is_remote_storage,
    run_deserialization as run_deserialization,
    run_serialization as run_serialization,
)
