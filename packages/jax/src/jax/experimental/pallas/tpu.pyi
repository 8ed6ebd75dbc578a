from bedrax.pallas.copies import (
    annotate as annotate,
    async_copy as async_copy,
    get_barrier_semaphore as get_barrier_semaphore,
    has_memory_space as has_memory_space,
    make_async_copy as make_async_copy,
    sync_copy as sync_copy,
    touch as touch,
    with_memory_space_constraint as with_memory_space_constraint,
)
from bedrax.pallas.cores import (
    TensorCoreMesh as TensorCoreMesh,
    core_barrier as core_barrier,
    create_tensorcore_mesh as create_tensorcore_mesh,
    run_on_first_core as run_on_first_core,
)
from bedrax.pallas.chips import is_tpu_device as is_tpu_device
from bedrax.pallas.inside import reciprocal as reciprocal
from bedrax.pallas.masked import load as load, store as store
from bedrax.pallas.matrix_units import (
    matmul_acc_lhs as matmul_acc_lhs,
    matmul_lhs_fifo as matmul_lhs_fifo,
    matmul_pop as matmul_pop,
    matmul_pop_fifo as matmul_pop_fifo,
    matmul_push_rhs as matmul_push_rhs,
)
from bedrax.pallas.modes import (
    force_tpu_interpret_mode as force_tpu_interpret_mode,
    reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state,
    set_tpu_interpret_mode as set_tpu_interpret_mode,
)
from bedrax.pallas.packing import (
    bitcast as bitcast,
    conv as conv,
    einshape as einshape,
    join_bits as join_bits,
    pack_elementwise as pack_elementwise,
    pack_fp6 as pack_fp6,
    roll as roll,
    split_bits as split_bits,
    stochastic_round as stochastic_round,
    unpack_elementwise as unpack_elementwise,
    unpack_fp6 as unpack_fp6,
)
from bedrax.pallas.pipelines import (
    BufferType as BufferType,
    BufferedRef as BufferedRef,
    PipelineStep as PipelineStep,
    emit_pipeline as emit_pipeline,
    emit_pipeline_with_allocations as emit_pipeline_with_allocations,
    emit_pipeline_with_async_prefetch as emit_pipeline_with_async_prefetch,
)
from bedrax.pallas.specs import (
    ACC as ACC,
    ARBITRARY as ARBITRARY,
    CMEM as CMEM,
    CORE_PARALLEL as CORE_PARALLEL,
    GridDimensionSemantics as GridDimensionSemantics,
    HBM as HBM,
    InterpretParams as InterpretParams,
    LoweringException as LoweringException,
    MemorySpace as MemorySpace,
    PARALLEL as PARALLEL,
    PrefetchScalarGridSpec as PrefetchScalarGridSpec,
    SEMAPHORE as SEMAPHORE,
    SMEM as SMEM,
    SUBCORE_PARALLEL as SUBCORE_PARALLEL,
    SemaphoreType as SemaphoreType,
    SideEffectType as SideEffectType,
    VMEM as VMEM,
    VMEM_SHARED as VMEM_SHARED,
    TPUCompilerParams as _CompilerParams,
)
from bedrax.extend.refused.tpu import *

CompilerParams = _CompilerParams
