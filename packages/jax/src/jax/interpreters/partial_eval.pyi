from bedrax.core.staging import StagedTracer as _StagedTracer
from bedrax.extend.partial_eval import (
    JaxprTracer as JaxprTracer, Val as Val, dce_jaxpr as dce_jaxpr,
    dce_jaxpr_call_rule as dce_jaxpr_call_rule, dce_jaxpr_closed_call_rule as dce_jaxpr_closed_call_rule,
    dce_jaxpr_consts as dce_jaxpr_consts, dce_rules as dce_rules,
    trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic, trace_to_jaxpr_nounits as trace_to_jaxpr_nounits,
)  # fmt: skip
from bedrax.extend.partial_values import PartialVal as PartialVal

DynamicJaxprTracer = _StagedTracer
