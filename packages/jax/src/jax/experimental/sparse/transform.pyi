from bedrax.sparse.environment import *
from bedrax.sparse.transform import (
    Array as Array,
    ArrayOrSparse as ArrayOrSparse,
    SparseTrace as SparseTrace,
    SparseTracer as SparseTracer,
    sparse_rules_bcoo as sparse_rules_bcoo,
    sparse_rules_bcsr as sparse_rules_bcsr,
    sparsify as sparsify,
    sparsify_fun as sparsify_fun,
)
