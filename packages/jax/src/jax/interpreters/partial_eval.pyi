from bedrax.core.staging import StagedTracer as _StagedTracer
from bedrax.extend.partial_eval import (
    PartialVal as PartialVal, dce_jaxpr as dce_jaxpr, dce_rules as dce_rules,
    trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic, trace_to_jaxpr_nounits as trace_to_jaxpr_nounits,
)  # fmt: skip

DynamicJaxprTracer = _StagedTracer
