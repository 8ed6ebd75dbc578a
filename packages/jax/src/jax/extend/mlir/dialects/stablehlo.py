"""`jax.extend.mlir.dialects.stablehlo`: MLIR's own Python bindings."""

from bedrax.xla_backend.jaxlib_door import mirror

__getattr__, __dir__, __all__ = mirror("dialects.stablehlo")
