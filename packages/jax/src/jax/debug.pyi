from bedrax.lax.primitives.callbacks import (
    DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect, debug_callback as callback,
    debug_log as log, debug_print as print,
)  # fmt: skip
