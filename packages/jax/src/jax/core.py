"""`jax.core`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach
from bedrax.extend import attributes as _attributes

_attributes.install()  # importers of this module read programs and primitives

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.core.avals": ("AbstractValue", "ShapedArray"),
        "bedrax.core.tracing": ("Tracer", "get_opaque_trace_state", "trace_state_clean"),
        "bedrax.core.ir": ("Atom", "DropVar", "ParamDict", "Value"),
        "bedrax.lax.eager_evaluation": ("ensure_compile_time_eval", "eval_context"),
        # Distrax: valid_jaxtype; NetKet: concrete_or_error
        "bedrax.extend.jaxprs": ("Trace", "concrete_or_error", "eval_jaxpr", "find_top_trace", "valid_jaxtype"),
        "bedrax.core.dims": ("max_dim", "min_dim"),
        "bedrax.core.errors": ("InconclusiveDimensionOperation",),
        "bedrax.extend.interpreters": ("pytype_aval_mappings",),
    },
)
