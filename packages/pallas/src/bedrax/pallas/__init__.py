"""Kernels over grids of blocks (`jax.experimental.pallas`), interpreted as loops over references."""

from bedrax.numpy.index_plans import Slice
from bedrax.pallas.calls import pallas_call, run_scoped, run_state, with_scoped
from bedrax.pallas.copies import semaphore_read, semaphore_signal, semaphore_wait
from bedrax.pallas.cores import core_map, kernel
from bedrax.pallas.flags import enable_debug_checks
from bedrax.pallas.inside import (
    align_to,
    broadcast_to,
    cdiv,
    debug_check,
    debug_print,
    ds,
    dslice,
    empty,
    empty_like,
    empty_ref_like,
    loop,
    multiple_of,
    next_power_of_2,
    num_programs,
    program_id,
    reciprocal,
    strides_from_shape,
    when,
)
from bedrax.pallas.specs import (
    ANY,
    HOST,
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    CompilerParams,
    CostEstimate,
    DeviceIdType,
    Element,
    GridSpec,
    Indirect,
    MemoryRef,
    MemorySpace,
    PrefetchScalarGridSpec,
    RevisitMode,
    Squeezed,
    no_block_spec,
    squeezed,
)

__all__ = [
    "ANY", "HOST", "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CompilerParams", "CostEstimate", "DeviceIdType",
    "Element", "GridSpec", "Indirect", "MemoryRef", "MemorySpace", "PrefetchScalarGridSpec", "RevisitMode", "Slice", "Squeezed", "align_to",
    "broadcast_to", "cdiv", "core_map", "debug_check", "debug_print", "ds", "dslice", "empty", "empty_like", "empty_ref_like", "enable_debug_checks",
    "kernel", "loop", "multiple_of", "next_power_of_2", "no_block_spec", "num_programs", "pallas_call", "program_id",
    "reciprocal", "run_scoped", "run_state", "semaphore_read", "semaphore_signal", "semaphore_wait", "squeezed", "strides_from_shape", "when", "with_scoped",
]  # fmt: skip
