"""`jax._src.lib.mlir.ir`: MLIR's own Python bindings."""

from bedrax.xla_backend.door.mlir import mirror

__getattr__, __dir__, __all__ = mirror("ir")
