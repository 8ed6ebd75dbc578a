"""`jax._src.dtypes`: names that Flax and Equinox use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # Flax, linen.fp8_ops; Equinox: TypePromotionError
        "bedrax.core.dtypes": (
            "TypePromotionError",
            "canonicalize_dtype",
            "extended",
            "finfo",
            "float0",
            "iinfo",
            "issubdtype",
            "prng_key",
            "to_complex_dtype",  # tinygp
        ),
        # optree
        "bedrax.lax.lattice": ("result_type",),
        # Flax, linen.fp8_ops
        "bedrax.extend.element_dtypes": ("supports_inf",),
    },
    renamed={"numpy": {"DType": "dtype"}, "bedrax.extend.element_dtypes": {"ExtendedDType": "ElementDType"}},
)
