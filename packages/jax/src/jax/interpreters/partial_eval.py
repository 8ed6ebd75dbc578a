"""`jax.interpreters.partial_eval`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.core.staging": (
        "DynamicJaxprTracer=StagedTracer",
    ),
    "bedrax.extend.partial_eval": (
        "PartialVal", "dce_jaxpr", "dce_rules", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.core.staging import (
        StagedTracer as DynamicJaxprTracer,
    )  # fmt: skip
    from bedrax.extend.partial_eval import (
        PartialVal as PartialVal, dce_jaxpr as dce_jaxpr, dce_rules as dce_rules,
        trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic, trace_to_jaxpr_nounits as trace_to_jaxpr_nounits,
    )  # fmt: skip
