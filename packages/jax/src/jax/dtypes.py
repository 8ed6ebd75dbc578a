"""`jax.dtypes`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.core.dtypes": (
            "TypePromotionError",
            "bfloat16",
            "canonicalize_dtype",
            "extended",
            "finfo",
            "float0",
            "iinfo",
            "issubdtype",
            "itemsize_bits",
            "prng_key",
            "scalar_type_of",
        ),
        "bedrax.lax.lattice": ("result_type",),
    },
)
