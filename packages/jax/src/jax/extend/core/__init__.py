"""`jax.extend.core`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach
from bedrax.extend import attributes as _attributes

_attributes.install()  # importers of this module read programs and primitives

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.core.avals": ("AbstractToken", "Token"),
        "bedrax.extend.jaxprs": (
            "CallPrimitive",
            "ClosedJaxpr",
            "Jaxpr",
            "JaxprEqn",
            "TraceTag",
            "array_types",
            "call_impl",
            "concrete_or_error",
            "find_top_trace",
            "gensym",
            "jaxprs_in_params",
            "mapped_aval",
            "new_jaxpr_eqn",
            "no_effects",
            "nonempty_axis_env_DO_NOT_USE",
            "primal_dtype_to_tangent_dtype",
            "set_current_trace",
            "subjaxprs",
            "take_current_trace",
            "unmapped_aval",
            "unsafe_am_i_under_a_jit_DO_NOT_USE",
            "unsafe_am_i_under_a_vmap_DO_NOT_USE",
            "unsafe_get_axis_names_DO_NOT_USE",
            "valid_jaxtype",
        ),
        "bedrax.core.ir": ("DebugInfo", "DropVar", "Var", "jaxpr_as_fun"),
        "bedrax.core.effects": ("Effect", "Effects"),
        "bedrax.core.errors": ("InconclusiveDimensionOperation",),
        "bedrax.core.typecheck": ("JaxprTypeError", "Literal", "check_jaxpr"),
        "bedrax.core.tracing": ("Primitive", "get_opaque_trace_state"),
        ".": ("primitives",),
        "bedrax.extend.call_primitives": (
            "create_call_primitive",
            "eval_jaxpr_transpose",
            "register_call_primitive_rules",
        ),
    },
)
