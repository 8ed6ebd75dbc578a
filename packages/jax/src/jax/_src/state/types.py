"""`jax._src.state.types`: names that Flax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # nnx.variablelib
        "bedrax.state.types": ("AbstractRef",)
    },
)
