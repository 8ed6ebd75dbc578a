"""`jax._src.lib.mlir.dialects.func`: MLIR's own Python bindings."""

from bedrax.xla_backend.door.mlir import mirror

__getattr__, __dir__, __all__ = mirror("dialects.func")
