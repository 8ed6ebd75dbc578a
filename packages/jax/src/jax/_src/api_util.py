"""`jax._src.api_util`: names that e3nn-jax and Oryx use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.api_util": (
            "debug_info",
            "flatten_fun",
            "flatten_fun_nokwargs",
            "infer_argnums_and_argnames",  # e3nn-jax
            "shaped_abstractify",
        )
    },
)
