from bedrax.core.avals import AbstractValue as AbstractValue, ShapedArray as ShapedArray
from bedrax.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from bedrax.extend.interpreters import (
    Zero as Zero, instantiate_zeros as instantiate_zeros, is_undefined_primal as is_undefined_primal,
)  # fmt: skip
from bedrax.extend.unsupported import HiPspec as HiPspec, VJPHiPrimitive as VJPHiPrimitive
from bedrax.state import AbstractRef as AbstractRef, TransformedRef as TransformedRef
from bedrax.state.hi_types import (
    AvalMutableQDD as AvalMutableQDD, AvalQDD as AvalQDD, HiPrimitive as HiPrimitive, HiType as HiType,
    MutableHiType as MutableHiType, aval_method as aval_method, aval_property as aval_property,
    register_hitype as register_hitype,
)  # fmt: skip
