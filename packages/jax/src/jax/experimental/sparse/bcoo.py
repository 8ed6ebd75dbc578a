"""`jax.experimental.sparse.bcoo`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.sparse.bcoo": (
            "BCOO",
            "Buffer",
            "CUSPARSE_DATA_DTYPES",
            "CUSPARSE_INDEX_DTYPES",
            "BCOOProperties",
            "bcoo_eliminate_zeros",
            "bcoo_extract",
            "bcoo_extract_p",
            "bcoo_fromdense",
            "bcoo_fromdense_p",
            "bcoo_sort_indices",
            "bcoo_sort_indices_p",
            "bcoo_sum_duplicates",
            "bcoo_sum_duplicates_p",
            "bcoo_todense",
            "bcoo_todense_p",
            "bcoo_transpose",
            "bcoo_transpose_p",
            "bcoo_update_layout",
        ),
        "bedrax.sparse.bcoo_products": (
            "bcoo_dot_general",
            "bcoo_dot_general_p",
            "bcoo_dot_general_sampled",
            "bcoo_dot_general_sampled_p",
            "bcoo_multiply_dense",
            "bcoo_multiply_sparse",
            "bcoo_spdot_general_p",
        ),
        "bedrax.sparse.bcoo_shaping": (
            "bcoo_broadcast_in_dim",
            "bcoo_concatenate",
            "bcoo_conv_general_dilated",
            "bcoo_dynamic_slice",
            "bcoo_gather",
            "bcoo_reduce_sum",
            "bcoo_reshape",
            "bcoo_rev",
            "bcoo_slice",
            "bcoo_squeeze",
        ),
    },
)
