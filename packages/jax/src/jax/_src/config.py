"""`jax._src.config`: the options."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.core.config": ("config", "enable_x64")},
    renamed={
        "bedrax.xla_backend.flags": {"jax_export_calling_convention_version": "export_calling_convention_version"}
    },
)
