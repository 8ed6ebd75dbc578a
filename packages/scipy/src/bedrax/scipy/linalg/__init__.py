"""`jax.scipy.linalg`: factorizations, solutions, functions of matrices, and matrices of special form.

Arguments of shape ``[..., m, n]`` are batches of matrices. The arguments of SciPy's LAPACK wrappers for speed
(``overwrite_a``, ``check_finite``, ``lwork``, ``lapack_driver``, ``turbo``, ``debug``) are accepted and have no effect.
"""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".factorizations": (
            "cho_factor",
            "cholesky",
            "eigh",
            "eigh_tridiagonal",
            "hessenberg",
            "lu",
            "lu_factor",
            "polar",
            "qr",
            "qr_multiply",
            "rsf2csf",
            "schur",
            "svd",
        ),
        ".solutions": ("cho_solve", "det", "inv", "lu_solve", "solve", "solve_sylvester", "solve_triangular"),
        ".matrix_functions": ("expm", "expm_frechet", "funm", "sqrtm"),
        ".special_matrices": (
            "block_diag",
            "circulant",
            "companion",
            "convolution_matrix",
            "dft",
            "fiedler",
            "fiedler_companion",
            "hadamard",
            "hankel",
            "helmert",
            "hilbert",
            "invhilbert",
            "invpascal",
            "leslie",
            "pascal",
            "toeplitz",
        ),
    },
)
