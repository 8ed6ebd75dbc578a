"""`jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # keras
        "bedrax.extend.unsupported": ("SegmentIds", "make_splash_mha")
    },
)
