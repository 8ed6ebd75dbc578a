from bedrax.xla_backend.clients import (  # Keras, ops.nn_test
    backends as backends,
    default_backend as default_backend,
    device_count as device_count,
    devices as devices,
    get_backend as get_backend,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    backends_are_initialized as backends_are_initialized,  # Flax, flax_gspmd
)
from bedrax.xla_backend.clients import _clients as _backends  # Chex, fake: the started backends
