from bedrax.processes.distributed import (  # Orbax: global_state
    State as State,
    global_state as global_state,
    initialize as initialize,
    shutdown as shutdown,
)
