"""`jax._src.core`: names that Flax, NumPyro and other libraries use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # Flax, linen.fp8_ops: ShapedArray
        "bedrax.core.avals": ("AbstractValue", "ShapedArray"),
        # Quax, Oryx; Dynamiqs: concrete_or_error; BrainState: JaxprEqnContext
        "bedrax.extend.jaxprs": (
            "CallPrimitive",
            "ClosedJaxpr",
            "JaxprEqnContext",
            "Trace",
            "TraceTag",
            "concrete_or_error",
            "eval_jaxpr",
            "full_lower",
            "get_aval",
            "set_current_trace",
            "take_current_trace",
        ),
        "bedrax.core.ir": ("DropVar", "Jaxpr", "Literal", "Var", "jaxpr_as_fun"),
        # NumPyro: trace_state_clean
        "bedrax.core.tracing": ("Primitive", "Tracer", "get_opaque_trace_state", "trace_state_clean"),
        "bedrax.extend.api_util": ("safe_map", "safe_zip"),
        "bedrax.lax.eager_evaluation": ("eval_context",),
    },
    renamed={
        "bedrax.core.tracing": {"trace_ctx": "current"},  # Quax: its attribute `trace` is the current trace
        "bedrax.lax.primitives.calls": {"call_p": "core_call_p"},
        # Flax, linen.fp8_ops
        "bedrax.lax.element_types": {"physical_aval": "base_aval"},
    },
    # The classes of tracers name this module as their own: `Tracer.__init_subclass__`.
    hidden={
        "bedrax.autodiff.forward": ("DualTracer", "JVPTracer"),
        "bedrax.autodiff.linearization": ("LinearizeTracer", "Node"),
        "bedrax.autodiff.taylor": ("SeriesTracer",),
        "bedrax.batching.trace": ("BatchTracer",),
        "bedrax.core.staging": ("StagedTracer",),
        "bedrax.core.typed_values": ("TypedValue",),
        "bedrax.sparse.transform": ("SparseTracer",),
        "bedrax.state.types": ("RefTracer",),
    },
)
