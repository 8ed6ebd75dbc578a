from bedrax.core.avals import AbstractToken as AbstractToken, Token as Token
from bedrax.extend.jaxprs import (
    CallPrimitive as CallPrimitive,
    ClosedJaxpr as ClosedJaxpr,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    TraceTag as TraceTag,
    array_types as array_types,
    call_impl as call_impl,
    concrete_or_error as concrete_or_error,
    find_top_trace as find_top_trace,
    gensym as gensym,
    jaxprs_in_params as jaxprs_in_params,
    mapped_aval as mapped_aval,
    new_jaxpr_eqn as new_jaxpr_eqn,
    no_effects as no_effects,
    nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE,
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
    set_current_trace as set_current_trace,
    subjaxprs as subjaxprs,
    take_current_trace as take_current_trace,
    unmapped_aval as unmapped_aval,
    unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype as valid_jaxtype,
)
from bedrax.core.ir import DebugInfo as DebugInfo, DropVar as DropVar, Var as Var, jaxpr_as_fun as jaxpr_as_fun
from bedrax.core.effects import Effect as Effect, Effects as Effects
from bedrax.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from bedrax.core.typecheck import JaxprTypeError as JaxprTypeError, Literal as Literal, check_jaxpr as check_jaxpr
from bedrax.core.tracing import Primitive as Primitive, get_opaque_trace_state as get_opaque_trace_state
from . import primitives as primitives
from bedrax.extend.call_primitives import (
    create_call_primitive as create_call_primitive,
    eval_jaxpr_transpose as eval_jaxpr_transpose,
    register_call_primitive_rules as register_call_primitive_rules,
)
