"""`jax.extend.core`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.core.avals": (
        "AbstractToken", "Token",
    ),
    "bedrax.core.ir": (
        "ClosedJaxpr=Jaxpr", "DebugInfo", "DropVar", "Jaxpr", "JaxprEqn=Eqn", "Literal", "Var",
        "jaxpr_as_fun", "no_effects", "subjaxprs",
    ),
    "bedrax.core.effects": (
        "Effect", "Effects",
    ),
    "bedrax.core.tracing": (
        "Primitive", "get_opaque_trace_state",
    ),
    "bedrax.batching.trace": (
        "mapped_aval", "unmapped_aval",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, ("primitives",))

if TYPE_CHECKING:
    from bedrax.core.avals import (
        AbstractToken as AbstractToken,
        Token as Token,
    )
    from bedrax.core.ir import (
        Jaxpr as ClosedJaxpr,
        DebugInfo as DebugInfo,
        DropVar as DropVar,
        Jaxpr as Jaxpr,
        Eqn as JaxprEqn,
        Literal as Literal,
        Var as Var,
        jaxpr_as_fun as jaxpr_as_fun,
        no_effects as no_effects,
        subjaxprs as subjaxprs,
    )
    from bedrax.core.effects import (
        Effect as Effect,
        Effects as Effects,
    )
    from bedrax.core.tracing import (
        Primitive as Primitive,
        get_opaque_trace_state as get_opaque_trace_state,
    )
    from bedrax.batching.trace import (
        mapped_aval as mapped_aval,
        unmapped_aval as unmapped_aval,
    )
    from jax.extend.core import primitives as primitives
