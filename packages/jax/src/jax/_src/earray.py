"""`jax._src.earray`: a name that Flax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # Flax, linen.fp8_ops
        "bedrax.extend.element_dtypes": ("EArray",)
    },
)
