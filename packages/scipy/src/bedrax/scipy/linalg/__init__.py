"""`jax.scipy.linalg`: factorizations, solutions, functions of matrices, and matrices of special form.

Arguments of shape ``[..., m, n]`` are batches of matrices. What SciPy's LAPACK wrappers take for speed
(``overwrite_a``, ``check_finite``, ``lwork``, ``lapack_driver``, ``turbo``, ``debug``) is accepted and has no effect.
"""

from __future__ import annotations

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.linalg.factorizations": (
        "cho_factor", "cholesky", "eigh", "eigh_tridiagonal", "hessenberg", "lu", "lu_factor", "polar", "qr",
        "qr_multiply", "rsf2csf", "schur", "svd",
    ),
    "bedrax.scipy.linalg.solutions": (
        "cho_solve", "det", "inv", "lu_solve", "solve", "solve_sylvester", "solve_triangular",
    ),
    "bedrax.scipy.linalg.matrix_functions": ("expm", "expm_frechet", "funm", "sqrtm"),
    "bedrax.scipy.linalg.special_matrices": (
        "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
        "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)
