from bedrax.lax.polar import qdwh as qdwh
from bedrax.lax.primitives.linalg import (
    EigImplementation as EigImplementation, EighImplementation as EighImplementation,
    SvdAlgorithm as SvdAlgorithm, cholesky as cholesky, cholesky_p as cholesky_p,
    cholesky_update as cholesky_update, cholesky_update_p as cholesky_update_p, eig as eig, eig_p as eig_p,
    eigh as eigh, eigh_p as eigh_p, hessenberg as hessenberg, hessenberg_p as hessenberg_p,
    householder_product as householder_product, householder_product_p as householder_product_p, lu as lu,
    lu_p as lu_p, lu_pivots_to_permutation as lu_pivots_to_permutation,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p, ormqr as ormqr, ormqr_p as ormqr_p,
    qr as qr, qr_p as qr_p, schur as schur, schur_p as schur_p, svd as svd, svd_p as svd_p,
    symmetric_product as symmetric_product, symmetric_product_p as symmetric_product_p,
    triangular_solve as triangular_solve, triangular_solve_p as triangular_solve_p,
    tridiagonal as tridiagonal, tridiagonal_p as tridiagonal_p, tridiagonal_solve as tridiagonal_solve,
    tridiagonal_solve_p as tridiagonal_solve_p,
)  # fmt: skip
