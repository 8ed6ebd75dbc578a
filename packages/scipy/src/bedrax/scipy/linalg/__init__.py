"""`jax.scipy.linalg`: factorizations, solutions, functions of matrices, and matrices of special form.

Arguments of shape ``[..., m, n]`` are batches of matrices. The arguments of SciPy's LAPACK wrappers for speed
(``overwrite_a``, ``check_finite``, ``lwork``, ``lapack_driver``, ``turbo``, ``debug``) are accepted and have no effect.
"""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
