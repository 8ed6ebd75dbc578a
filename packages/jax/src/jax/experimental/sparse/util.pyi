from bedrax.sparse.formats import (
    CuSparseEfficiencyWarning as CuSparseEfficiencyWarning,
    Shape as Shape,
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
    SparseInfo as SparseInfo,
    broadcasting_vmap as broadcasting_vmap,
    nfold_vmap as nfold_vmap,
)
