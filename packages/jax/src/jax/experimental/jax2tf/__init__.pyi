from .call_tf import call_tf as call_tf  # a module and a function: the function stays
from bedrax.jax2tf import (
    DisabledSafetyCheck as DisabledSafetyCheck,
    PolyShape as PolyShape,
    convert as convert,
    dtype_of_val as dtype_of_val,
    eval_polymorphic_shape as eval_polymorphic_shape,
    split_to_logical_devices as split_to_logical_devices,
)
from . import jax2tf as jax2tf
