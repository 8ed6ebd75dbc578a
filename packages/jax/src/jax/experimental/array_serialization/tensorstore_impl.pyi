from bedrax.processes.tensorstore_io import (
    async_deserialize as async_deserialize, async_serialize as async_serialize,
    get_tensorstore_spec as get_tensorstore_spec,
)  # fmt: skip
