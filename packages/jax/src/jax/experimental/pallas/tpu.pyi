from bedrax.pallas.masked import load as load, store as store
from bedrax.pallas.specs import (
    HBM as HBM, SMEM as SMEM, VMEM as VMEM, InterpretParams as InterpretParams, MemorySpace as MemorySpace,
    PrefetchScalarGridSpec as PrefetchScalarGridSpec, TPUCompilerParams as _CompilerParams,
)  # fmt: skip

CompilerParams = _CompilerParams
