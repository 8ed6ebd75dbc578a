from . import (
    backend as backend,
    core as core,
    ifrt_programs as ifrt_programs,
    linear_util as linear_util,
    lowering as lowering,
    mlir as mlir,
    pallas as pallas,
    random as random,
    sharding as sharding,
    source_info_util as source_info_util,
    xla as xla,
)
