from bedrax.extend.hijax import (
    AbstractRef as AbstractRef, AbstractValue as AbstractValue, HiPrimitive as HiPrimitive,
    HiPspec as HiPspec, HiType as HiType, MutableHiType as MutableHiType, ShapedArray as ShapedArray,
    TransformedRef as TransformedRef, VJPHiPrimitive as VJPHiPrimitive, Zero as Zero,
    aval_method as aval_method, aval_property as aval_property,
    control_flow_allowed_effects as control_flow_allowed_effects, instantiate_zeros as instantiate_zeros,
    is_undefined_primal as is_undefined_primal, register_hitype as register_hitype,
)  # fmt: skip
