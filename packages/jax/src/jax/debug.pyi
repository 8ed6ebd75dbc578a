from bedrax.extend.debugger import breakpoint as breakpoint
from bedrax.lax.primitives.callbacks import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
    debug_callback as _debug_callback,
    debug_log as _debug_log,
    debug_print as _debug_print,
)
from bedrax.lax.primitives.placement import inspect_array_sharding as inspect_array_sharding
from bedrax.xla_backend.pictures import (
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)

callback = _debug_callback
log = _debug_log
print = _debug_print
