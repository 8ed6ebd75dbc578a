"""`jax._src.ad_util`: names that Lineax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.autodiff.tables": ("Zero", "add_tangents", "instantiate"),
        "bedrax.lax.primitives.elementwise": ("add_jaxvals_p", "stop_gradient_p"),
    },
)
