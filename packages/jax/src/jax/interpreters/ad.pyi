from bedrax.autodiff.forward import JVPTrace as JVPTrace, JVPTracer as JVPTracer
from bedrax.extend.interpreters import (
    UndefinedPrimal as UndefinedPrimal,
    Zero as Zero,
    add_jaxvals as add_jaxvals,
    add_tangents as add_tangents,
    backward_pass as backward_pass,
    defbilinear as defbilinear,
    defjvp as defjvp,
    defjvp2 as defjvp2,
    deflinear as deflinear,
    deflinear2 as deflinear2,
    get_primitive_transpose as get_primitive_transpose,
    instantiate_zeros as instantiate_zeros,
    is_undefined_primal as is_undefined_primal,
    jvp as jvp,
    jvp_jaxpr as jvp_jaxpr,
    primitive_jvps as primitive_jvps,
    primitive_transposes as primitive_transposes,
    zeros_like_aval as zeros_like_aval,
)
from bedrax.lax.primitives.elementwise import add_jaxvals_p as add_jaxvals_p
