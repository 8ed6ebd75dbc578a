from bedrax.pallas.chips import (
    CUSTOM_CALL_TARGET_NAME as CUSTOM_CALL_TARGET_NAME,
    GpuInfo as GpuInfo,
    GpuVersion as GpuVersion,
    get_gpu_info as get_gpu_info,
    get_gpu_info_from_version as get_gpu_info_from_version,
    is_gpu_device as is_gpu_device,
)
from bedrax.pallas.masked import (
    CompilerParams as CompilerParams,
    approx_tanh as approx_tanh,
    atomic_add as atomic_add,
    atomic_and as atomic_and,
    atomic_cas as atomic_cas,
    atomic_max as atomic_max,
    atomic_min as atomic_min,
    atomic_or as atomic_or,
    atomic_xchg as atomic_xchg,
    atomic_xor as atomic_xor,
    debug_barrier as debug_barrier,
    dot as dot,
    load as load,
    max_contiguous as max_contiguous,
    store as store,
)
from bedrax.extend.refused.triton import *
