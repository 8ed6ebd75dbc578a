"""`jax.example_libraries.optimizers`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.core.array": ("Array",), "bedrax.libraries.optimizers": "*"},
    renamed={"bedrax.extend.api_util": {"map": "safe_map", "zip": "safe_zip"}},
)
