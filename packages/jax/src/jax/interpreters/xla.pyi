from bedrax.xla_backend.jaxlib_door import Client as Backend
from bedrax.extend.interpreters import apply_primitive as apply_primitive
