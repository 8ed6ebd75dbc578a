from bedrax.core.tracing import (
    AbstractValue as AbstractValue,
    ShapedArray as ShapedArray,
    Tracer as Tracer,
    get_opaque_trace_state as get_opaque_trace_state,
    trace_state_clean as trace_state_clean,
)
from bedrax.core.ir import Atom as Atom, DropVar as DropVar, ParamDict as ParamDict, Value as Value
from bedrax.lax.at_once import ensure_compile_time_eval as ensure_compile_time_eval, eval_context as eval_context
from bedrax.extend.jaxprs import (  # Distrax: valid_jaxtype; NetKet: concrete_or_error
    Trace as Trace,
    concrete_or_error as concrete_or_error,
    eval_jaxpr as eval_jaxpr,
    find_top_trace as find_top_trace,
    valid_jaxtype as valid_jaxtype,
)
from bedrax.core.dims import max_dim as max_dim, min_dim as min_dim
from bedrax.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from bedrax.extend.interpreters import pytype_aval_mappings as pytype_aval_mappings
