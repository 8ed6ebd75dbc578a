from bedrax.xla_backend.door.runtime import Client as _Client
from bedrax.extend.interpreters import (
    apply_primitive as apply_primitive,
    canonicalize_dtype_handlers as canonicalize_dtype_handlers,
    pytype_aval_mappings as pytype_aval_mappings,
)

Backend = _Client
