"""`jax.experimental.pallas.fuser`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.pallas.fusing": (
            "Fusion",
            "block_spec_with_prefetch",
            "evaluate",
            "filter_no_block_specs",
            "fuse",
            "fusible",
            "get_fusion_values",
            "make_scalar_prefetch_handler",
            "pull_block_spec",
            "push_block_spec",
            "push_pull_block_spec",
        ),
        "bedrax.extend.refused.fuser": "*",
    },
)
