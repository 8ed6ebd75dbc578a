"""`jax.experimental.sparse.transform`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.sparse.environment": "*",
        "bedrax.sparse.transform": (
            "Array",
            "ArrayOrSparse",
            "SparseTrace",
            "SparseTracer",
            "sparse_rules_bcoo",
            "sparse_rules_bcsr",
            "sparsify",
            "sparsify_fun",
        ),
    },
)
