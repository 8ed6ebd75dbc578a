"""`jax.experimental.sparse.ad`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.sparse.transform": ("is_sparse",),
        "bedrax.sparse.ad": ("flatten_fun_for_sparse_ad", "grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"),
    },
)
