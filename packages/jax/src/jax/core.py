"""`jax.core`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.core.tracing": (
        "AbstractValue", "Trace", "Tracer", "trace_state_clean",
    ),
    "bedrax.core.ir": (
        "Atom", "eval_jaxpr",
    ),
    "bedrax.core.avals": (
        "ShapedArray",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.core.tracing import (
        AbstractValue as AbstractValue,
        Trace as Trace,
        Tracer as Tracer,
        trace_state_clean as trace_state_clean,
    )
    from bedrax.core.ir import (
        Atom as Atom,
        eval_jaxpr as eval_jaxpr,
    )
    from bedrax.core.avals import (
        ShapedArray as ShapedArray,
    )
