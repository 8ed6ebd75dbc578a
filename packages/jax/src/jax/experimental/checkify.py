"""`jax.experimental.checkify`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.checkify.assertions": ("check", "check_error", "debug_check"),
        "bedrax.checkify.errors": (
            "Error",
            "ErrorCategory",
            "JaxRuntimeError",
            "all_checks",
            "automatic_checks",
            "div_checks",
            "float_checks",
            "index_checks",
            "init_error",
            "nan_checks",
            "user_checks",
        ),
        "bedrax.checkify.trace": ("checkify",),
    },
)
