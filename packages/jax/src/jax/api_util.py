"""`jax.api_util`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.api_util": (
            "argnums_partial",
            "debug_info",
            "donation_vector",
            "flatten_axes",
            "flatten_fun",
            "flatten_fun_nokwargs",
            "rebase_donate_argnums",
            "safe_map",
            "shaped_abstractify",
        )
    },
)
