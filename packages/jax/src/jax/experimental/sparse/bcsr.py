"""`jax.experimental.sparse.bcsr`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.sparse.bcsr": (
            "BCSR",
            "BCSRProperties",
            "bcsr_broadcast_in_dim",
            "bcsr_concatenate",
            "bcsr_dot_general",
            "bcsr_dot_general_p",
            "bcsr_eliminate_zeros",
            "bcsr_extract",
            "bcsr_extract_p",
            "bcsr_fromdense",
            "bcsr_fromdense_p",
            "bcsr_sum_duplicates",
            "bcsr_todense",
            "bcsr_todense_p",
        )
    },
)
