from bedrax.pallas.fusing import (
    Fusion as Fusion,
    block_spec_with_prefetch as block_spec_with_prefetch,
    evaluate as evaluate,
    filter_no_block_specs as filter_no_block_specs,
    fuse as fuse,
    fusible as fusible,
    get_fusion_values as get_fusion_values,
    make_scalar_prefetch_handler as make_scalar_prefetch_handler,
    pull_block_spec as pull_block_spec,
    push_block_spec as push_block_spec,
    push_pull_block_spec as push_pull_block_spec,
)
from bedrax.extend.refused.fuser import *
