"""`jax.experimental.sparse.csr`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.sparse.formats": ("Shape",),
        "bedrax.sparse.matrices": (
            "CSC",
            "CSR",
            "csr_fromdense",
            "csr_fromdense_p",
            "csr_matmat",
            "csr_matmat_p",
            "csr_matvec",
            "csr_matvec_p",
            "csr_todense",
            "csr_todense_p",
        ),
    },
)
