from bedrax.jax2tf import (
    DEFAULT_NATIVE_SERIALIZATION as DEFAULT_NATIVE_SERIALIZATION,
    DisabledSafetyCheck as DisabledSafetyCheck,
    PolyShape as PolyShape,
    convert as convert,
    dtype_of_val as dtype_of_val,
    PartitionsOrReplicated as PartitionsOrReplicated,
    eval_polymorphic_shape as eval_polymorphic_shape,
    get_thread_local_state_call_tf_concrete_function_list as get_thread_local_state_call_tf_concrete_function_list,
    inside_call_tf as inside_call_tf,
    preprocess_arg_tf as preprocess_arg_tf,
    split_to_logical_devices as split_to_logical_devices,
)
from bedrax.call_tf import TfVal as TfVal
from bedrax.extend.source_info import NameStack as NameStack
from builtins import int as _int
from numpy import dtype as _dtype

DType = _dtype
PrecisionType = _int
