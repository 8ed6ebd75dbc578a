from bedrax.xla_backend.jaxlib_door import Client as _Client
from bedrax.extend.interpreters import apply_primitive as apply_primitive

Backend = _Client
