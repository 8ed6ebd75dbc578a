"""MLIR contexts for modules that libraries build themselves (`jax.extend.lowering`)."""

from bedrax.xla_backend.door import mlir

__all__ = ["JaxIrContext", "upstream_dialects"]

_loaded = mlir.load()
upstream_dialects = _loaded.registry  # MLIR's own dialects


class JaxIrContext(_loaded.ir.Context):
    """A new context with the dialects of our modules. Modules of different contexts cannot be combined.

    Examples:

      >>> from jax.extend.lowering import JaxIrContext
      >>> from jax.extend.mlir import ir
      >>> text = jax.jit(jnp.sin).lower(1.).as_text()
      >>> context = JaxIrContext()
      >>> module = ir.Module.parse(text, context)  # a copy, apart from those that jax works with
      >>> module.context is context, "stablehlo.sine" in str(module)
      (True, True)
    """

    def __init__(self) -> None:
        super().__init__()
        mlir.register_dialects(self, upstream_dialects)
