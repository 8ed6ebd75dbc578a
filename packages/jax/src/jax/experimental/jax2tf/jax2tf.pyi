from bedrax.jax2tf import (
    DEFAULT_NATIVE_SERIALIZATION as DEFAULT_NATIVE_SERIALIZATION, DisabledSafetyCheck as DisabledSafetyCheck, PolyShape as PolyShape,
    convert as convert, dtype_of_val as dtype_of_val,
    eval_polymorphic_shape as eval_polymorphic_shape, split_to_logical_devices as split_to_logical_devices,
)  # fmt: skip
