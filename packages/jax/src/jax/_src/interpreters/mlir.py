"""`jax._src.interpreters.mlir`: the names of `jax.interpreters.mlir`; the guide to exported programs imports it."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.mlir.modules": "*",
        "bedrax.xla_backend.mlir.rules": ("ir", "make_ir_context", "module_to_string"),
    },
)
