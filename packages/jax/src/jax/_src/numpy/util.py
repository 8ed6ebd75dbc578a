"""`jax._src.numpy.util`: names that orthax and s2fft use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.promotion": (
            "promote_dtypes_complex",  # s2fft
            "promote_dtypes_inexact",  # orthax
        )
    },
)
