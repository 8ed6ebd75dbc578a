"""`jax.experimental.roofline`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.roofline": "*",
        "bedrax.extend.unsupported": (
            "register_roofline",
            "register_standard_roofline",
            "roofline",
            "roofline_and_grad",
        ),
    },
)
