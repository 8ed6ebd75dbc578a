"""`jax.experimental.scheduling_groups`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.metadata": ("scheduling_group", "xla_metadata_call"),
        "bedrax.extend.unsupported": ("attr_get",),
        "bedrax.lax.primitives.calls": ("xla_metadata_call_p",),
    },
)
