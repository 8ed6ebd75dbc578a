from bedrax.core.avals import AbstractValue as AbstractValue, ShapedArray as ShapedArray
from bedrax.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from bedrax.extend.hi_prims import (
    GradAccum as GradAccum,
    HiPrim as HiPrim,
    MappingSpec as MappingSpec,
    NullAccum as NullAccum,
    RefAccum as RefAccum,
    ValAccum as ValAccum,
    VJPHiPrimitive as VJPHiPrimitive,
    bdims_at_front as bdims_at_front,
    instantiate_zeros as instantiate_zeros,
    jvp_from_lin as jvp_from_lin,
    linearize_from_jvp as linearize_from_jvp,
    unmap_avals as unmap_avals,
    vjp_from_jvp as vjp_from_jvp,
    vjp_from_lin as vjp_from_lin,
    vmap_rule as vmap_rule,
)
from bedrax.extend.interpreters import Zero as Zero, is_undefined_primal as is_undefined_primal
from bedrax.extend.unsupported import HiPspec as HiPspec
from bedrax.state import AbstractRef as AbstractRef, TransformedRef as TransformedRef
from bedrax.state.hi_types import (
    AvalMutableQDD as AvalMutableQDD,
    AvalQDD as AvalQDD,
    HiPrimitive as HiPrimitive,
    HiType as HiType,
    MutableHiType as MutableHiType,
    aval_method as aval_method,
    aval_property as aval_property,
    register_hitype as register_hitype,
)
