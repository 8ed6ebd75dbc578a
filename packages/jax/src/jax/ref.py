"""`jax.ref`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.state": (
            "AbstractRef",
            "Ref",
            "addupdate",
            "empty_ref",
            "free_ref",
            "freeze",
            "get",
            "new_ref",
            "set",
            "swap",
        )
    },
)
