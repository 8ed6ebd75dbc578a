from typing import Any as _Any
from bedrax.processes.colocated import (
    FunctionInfo as FunctionInfo,
    Specialization as Specialization,
    is_prng_key_dtype as is_prng_key_dtype,
    make_callable as make_callable,
)

ShapeDtypeStructTree = _Any
