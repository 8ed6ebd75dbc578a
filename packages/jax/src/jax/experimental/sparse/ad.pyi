from bedrax.sparse.transform import is_sparse as is_sparse
from bedrax.sparse.ad import (
    flatten_fun_for_sparse_ad as flatten_fun_for_sparse_ad,
    grad as grad,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    value_and_grad as value_and_grad,
)
