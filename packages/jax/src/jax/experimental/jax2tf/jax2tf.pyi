from bedrax.jax2tf import (
    DEFAULT_NATIVE_SERIALIZATION as DEFAULT_NATIVE_SERIALIZATION, DisabledSafetyCheck as DisabledSafetyCheck, PolyShape as PolyShape,
    convert as convert, dtype_of_val as dtype_of_val,
    eval_polymorphic_shape as eval_polymorphic_shape, split_to_logical_devices as split_to_logical_devices,
)  # fmt: skip
from bedrax.call_tf import TfVal as TfVal
from bedrax.extend.source_info import NameStack as NameStack
from numpy import dtype as _dtype

DType = _dtype
