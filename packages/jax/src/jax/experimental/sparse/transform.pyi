from bedrax.sparse.transform import (
    Array as Array,
    ArrayOrSparse as ArrayOrSparse,
    sparse_rules_bcoo as sparse_rules_bcoo,
    sparse_rules_bcsr as sparse_rules_bcsr,
    SparseTrace as SparseTrace,
    SparseTracer as SparseTracer,
    sparsify as sparsify,
)
