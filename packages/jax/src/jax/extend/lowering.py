"""`jax.extend.lowering`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.mlir.contexts": ("JaxIrContext", "upstream_dialects"),
        "bedrax.xla_backend.mlir.rules": ("LoweringRuleContext",),
    },
)
