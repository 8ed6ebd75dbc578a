from bedrax.core.avals import (
    AbstractValue as AbstractValue,
    ShapedArray as ShapedArray,
)  # Flax, linen.fp8_ops: ShapedArray
from bedrax.extend.jaxprs import eval_jaxpr as eval_jaxpr
from bedrax.core.ir import Jaxpr as Jaxpr, Literal as Literal, Var as Var
from bedrax.core.tracing import (  # NumPyro: trace_state_clean
    Primitive as Primitive, Trace as Trace, Tracer as Tracer, get_opaque_trace_state as get_opaque_trace_state,
    trace_state_clean as trace_state_clean,
)  # fmt: skip
