"""`jax._src.distributed`: needed by Orbax (global_state)."""

from bedrax.extend.distributed import (
    State,
    global_state,
    initialize,
    shutdown,
)
