from bedrax.processes.tensorstore_io import (
    async_deserialize as async_deserialize,
    async_serialize as async_serialize,
    get_tensorstore_spec as get_tensorstore_spec,
)
from bedrax.processes.tensorstore_specs import (
    Future as Future,
    Transaction as Transaction,
    combine_kvstores as combine_kvstores,
    estimate_read_memory_footprint as estimate_read_memory_footprint,
    is_tensorstore_spec_leaf as is_tensorstore_spec_leaf,
    merge_nested_ts_specs as merge_nested_ts_specs,
    verify_tensorstore_spec as verify_tensorstore_spec,
)
