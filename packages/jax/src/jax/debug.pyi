from bedrax.lax.primitives.callbacks import (
    DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect, debug_callback as _debug_callback,
    debug_log as _debug_log, debug_print as _debug_print,
)  # fmt: skip

callback = _debug_callback
log = _debug_log
print = _debug_print
