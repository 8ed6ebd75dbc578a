"""`jax._src.checkify`: names that Flax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.checkify.assertions": ("check",),
        # Flax, nnx.transforms.transforms: user_checks
        "bedrax.checkify.errors": ("Error", "JaxException", "user_checks"),
        "bedrax.checkify.trace": ("Out", "checkify"),
    },
)
