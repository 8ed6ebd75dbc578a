"""`jax.scipy.linalg`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.linalg": (
        "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix",
        "det", "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion",
        "funm", "hadamard", "hankel", "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal",
        "leslie", "lu", "lu_factor", "lu_solve", "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur",
        "solve", "solve_sylvester", "solve_triangular", "sqrtm", "svd", "toeplitz",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.linalg import (
        block_diag as block_diag, cho_factor as cho_factor, cho_solve as cho_solve, cholesky as cholesky,
        circulant as circulant, companion as companion, convolution_matrix as convolution_matrix,
        det as det, dft as dft, eigh as eigh, eigh_tridiagonal as eigh_tridiagonal, expm as expm,
        expm_frechet as expm_frechet, fiedler as fiedler, fiedler_companion as fiedler_companion,
        funm as funm, hadamard as hadamard, hankel as hankel, helmert as helmert, hessenberg as hessenberg,
        hilbert as hilbert, inv as inv, invhilbert as invhilbert, invpascal as invpascal, leslie as leslie,
        lu as lu, lu_factor as lu_factor, lu_solve as lu_solve, pascal as pascal, polar as polar, qr as qr,
        qr_multiply as qr_multiply, rsf2csf as rsf2csf, schur as schur, solve as solve,
        solve_sylvester as solve_sylvester, solve_triangular as solve_triangular, sqrtm as sqrtm,
        svd as svd, toeplitz as toeplitz,
    )  # fmt: skip
