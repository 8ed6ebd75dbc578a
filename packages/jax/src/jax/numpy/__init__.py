"""`jax.numpy`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.numpy": "*",
        # ours, not the other's
        ".": ("fft", "linalg"),
    },
    hidden={"bedrax.numpy": ("__array_api_version__", "__array_namespace_info__")},
)
