"""`jax._src.core`: needed by Flax (linen.fp8_ops: ShapedArray), NumPyro (trace_state_clean)."""

from bedrax.core.avals import (
    AbstractValue,
    ShapedArray,
)
from bedrax.core.ir import (
    Jaxpr,
    Literal,
    Var,
    eval_jaxpr,
)
from bedrax.core.tracing import (
    Primitive,
    Trace,
    Tracer,
    get_opaque_trace_state,
    trace_state_clean,
)
