from bedrax.core.avals import (
    AbstractValue as AbstractValue,
    ShapedArray as ShapedArray,
)  # Flax, linen.fp8_ops: ShapedArray
from bedrax.extend.jaxprs import (  # Quax, Oryx; Dynamiqs: concrete_or_error
    CallPrimitive as CallPrimitive,
    ClosedJaxpr as ClosedJaxpr,
    Trace as Trace,
    TraceTag as TraceTag,
    concrete_or_error as concrete_or_error,
    eval_jaxpr as eval_jaxpr,
    full_lower as full_lower,
    get_aval as get_aval,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
)
from bedrax.core.ir import (
    DropVar as DropVar,
    Jaxpr as Jaxpr,
    Literal as Literal,
    Var as Var,
    jaxpr_as_fun as jaxpr_as_fun,
)
from bedrax.core.tracing import (  # NumPyro: trace_state_clean
    Primitive as Primitive,
    Tracer as Tracer,
    get_opaque_trace_state as get_opaque_trace_state,
    trace_state_clean as trace_state_clean,
)
from bedrax.extend.api_util import safe_map as safe_map, safe_zip as safe_zip
from bedrax.lax.element_types import base_aval as _base_aval  # Flax, linen.fp8_ops
from bedrax.lax.at_once import eval_context as eval_context
from bedrax.lax.primitives.calls import core_call_p as _core_call_p

call_p = _core_call_p
physical_aval = _base_aval
