from bedrax.pallas import (
    ANY as ANY, HOST as HOST, BlockDim as BlockDim, BlockSpec as BlockSpec, Blocked as Blocked,
    BoundedSlice as BoundedSlice, Buffered as Buffered, CompilerParams as CompilerParams,
    CostEstimate as CostEstimate, Element as Element, GridSpec as GridSpec, MemoryRef as MemoryRef,
    MemorySpace as MemorySpace, Slice as Slice, Squeezed as Squeezed, align_to as align_to,
    broadcast_to as broadcast_to, cdiv as cdiv, debug_check as debug_check, debug_print as debug_print,
    ds as ds, dslice as dslice, empty as empty, empty_like as empty_like, empty_ref_like as empty_ref_like,
    enable_debug_checks as enable_debug_checks,
    loop as loop, multiple_of as multiple_of, next_power_of_2 as next_power_of_2,
    no_block_spec as no_block_spec, num_programs as num_programs, pallas_call as pallas_call,
    program_id as program_id, reciprocal as reciprocal, run_scoped as run_scoped, run_state as run_state,
    squeezed as squeezed, strides_from_shape as strides_from_shape, when as when, with_scoped as with_scoped,
)  # fmt: skip
from bedrax.pallas import (
    DeviceIdType as DeviceIdType, Indirect as Indirect, RevisitMode as RevisitMode, core_map as core_map,
    kernel as kernel, semaphore_read as semaphore_read, semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
)  # fmt: skip
from bedrax.extend.refused.pallas import *
from . import fuser as fuser, mosaic_gpu as mosaic_gpu, ops as ops, tpu as tpu, tpu_sc as tpu_sc, triton as triton
