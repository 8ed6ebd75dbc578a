"""`jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.unsupported": (
            "CausalMask",
            "MultiHeadMask",
            "NumpyMask",  # keras
        )
    },
)
