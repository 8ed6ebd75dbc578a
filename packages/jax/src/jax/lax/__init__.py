"""`jax.lax`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.lax": "*",
        "bedrax.autodiff.implicit": ("custom_linear_solve", "custom_root"),
        "bedrax.xla_backend.placement": ("device_put_p", "sharding_constraint_p", "with_sharding_constraint"),
        ".": ("linalg",),
    },
)
