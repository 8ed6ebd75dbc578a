"""`jax.debug`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.core.primitives.callbacks": (
        "DebugEffect", "OrderedDebugEffect", "callback=debug_callback", "log=debug_log", "print=debug_print",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.core.primitives.callbacks import (
        DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect, debug_callback as callback,
        debug_log as log, debug_print as print,
    )  # fmt: skip
