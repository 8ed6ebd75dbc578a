"""`jax._src.distributed`: needed by Orbax (global_state)."""

from bedrax.processes.distributed import (
    State,
    global_state,
    initialize,
    shutdown,
)
