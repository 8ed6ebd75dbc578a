"""`jax.extend.linear_util`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.linear_util": (
            "StoreException",
            "WrappedFun",
            "cache",
            "merge_linear_aux",
            "transformation",
            "transformation2",
            "transformation_with_aux",
            "transformation_with_aux2",
            "wrap_init",
        )
    },
)
