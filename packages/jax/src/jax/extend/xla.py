"""`jax.extend.xla`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.services": ("PipelineStage", "clear_hlo_module_transformation"),
        "bedrax.extend.unsupported": ("register_hlo_module_transformation",),
    },
)
