"""MLIR contexts for modules that libraries build themselves (`jax.extend.lowering`)."""

from bedrax.xla_backend.door import mlir

__all__ = ["JaxIrContext", "upstream_dialects"]

_loaded = mlir.load()
upstream_dialects = _loaded.registry  # MLIR's own dialects


class JaxIrContext(_loaded.ir.Context):
    """A new context with the dialects of our modules. Modules of different contexts cannot be combined."""

    def __init__(self) -> None:
        super().__init__()
        mlir.register_dialects(self, upstream_dialects)
