"""`jax._src.flattree`: names that Quax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # Quax
        "bedrax.lax.groups": ("FlatTree", "nones", "pack")
    },
)
