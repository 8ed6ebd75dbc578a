from bedrax.sparse.formats import Dtype as Dtype, Shape as Shape
from bedrax.sparse.matrices import (
    COO as COO,
    COOInfo as COOInfo,
    coo_fromdense as coo_fromdense,
    coo_fromdense_p as coo_fromdense_p,
    coo_matmat as coo_matmat,
    coo_matmat_p as coo_matmat_p,
    coo_matvec as coo_matvec,
    coo_matvec_p as coo_matvec_p,
    coo_todense as coo_todense,
    coo_todense_p as coo_todense_p,
)
