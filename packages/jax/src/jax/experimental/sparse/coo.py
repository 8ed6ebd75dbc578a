"""`jax.experimental.sparse.coo`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.sparse.formats": ("Dtype", "Shape"),
        "bedrax.sparse.matrices": (
            "COO",
            "COOInfo",
            "coo_fromdense",
            "coo_fromdense_p",
            "coo_matmat",
            "coo_matmat_p",
            "coo_matvec",
            "coo_matvec_p",
            "coo_todense",
            "coo_todense_p",
        ),
    },
)
