from bedrax.xla_backend.door.runtime import Client as _Client
from bedrax.extend.interpreters import apply_primitive as apply_primitive

Backend = _Client
