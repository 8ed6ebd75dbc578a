from bedrax.core.staging import StagedTracer as _StagedTracer
from bedrax.extend.partial_eval import (
    JaxprTracer as JaxprTracer,
    Val as Val,
    abstract_eval_fun as abstract_eval_fun,
    close_jaxpr as close_jaxpr,
    convert_constvars_jaxpr as convert_constvars_jaxpr,
    dce_jaxpr as dce_jaxpr,
    dce_jaxpr_call_rule as dce_jaxpr_call_rule,
    dce_jaxpr_closed_call_rule as dce_jaxpr_closed_call_rule,
    dce_jaxpr_consts as dce_jaxpr_consts,
    dce_rules as dce_rules,
    lower_jaxpr2 as lower_jaxpr2,
    move_binders_to_back as move_binders_to_back,
    partial_eval_jaxpr_nounits as partial_eval_jaxpr_nounits,
    prune_closed_jaxpr_outputs as prune_closed_jaxpr_outputs,
    trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits as trace_to_jaxpr_nounits,
)
from bedrax.extend.partial_values import PartialVal as PartialVal

DynamicJaxprTracer = _StagedTracer
