"""`jax.interpreters.xla`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.extend.interpreters": ("apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings")},
    renamed={"bedrax.xla_backend.door.runtime": {"Backend": "Client"}},
)
