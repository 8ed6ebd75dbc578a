"""`jax.debug`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.lax.primitives.callbacks": (
        "DebugEffect", "OrderedDebugEffect", "callback=debug_callback", "log=debug_log", "print=debug_print",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.lax.primitives.callbacks import (  # fmt: skip
        DebugEffect as DebugEffect,
        OrderedDebugEffect as OrderedDebugEffect,
        debug_callback as callback,
        debug_log as log,
        debug_print as print,
    )
