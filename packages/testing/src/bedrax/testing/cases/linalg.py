"""Records of linear algebra. Results that are determined up to sign, phase or order only are compared by what they
make."""

import numpy as np

from bedrax import lax
from bedrax.lax import matrices
from bedrax.lax.primitives import elementwise
from bedrax.lax.primitives import linalg as p
from bedrax.testing.records import OpCase, arg


def _t(x):
    return np.swapaxes(x, -1, -2)


def _h(x):
    return _t(x).conj()


def _spd(n, dtype="float32", batch=(), seed=0):
    """Positive definite matrices."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((*batch, n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(a.shape)
    return (a @ _h(a) + n * np.eye(n)).astype(dtype)


def _separated(n, dtype="float32", batch=(), seed=1):
    """Matrices with well separated eigenvalues and singular values."""
    rng = np.random.default_rng(seed)
    a = 0.3 * rng.standard_normal((*batch, n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 0.3j * rng.standard_normal(a.shape)
    return (a + np.diag(np.arange(1.0, n + 1))).astype(dtype)


def _tall(m, n, dtype="float32", seed=2):
    """Matrices with well separated singular values, and independent columns (or rows) in front."""
    return _separated(max(m, n), dtype, (), seed)[:m, :n]


def _lu_product(x):
    """``L U`` of `lu`, whose rows are those of `x` in the order of the permutation."""
    lu, _, _ = lax.lu(x)
    l = elementwise.add(matrices.triangle(lu, True, -1), _identity_like(x))
    return matrices.matmul(l, matrices.triangle(lu, False))


def _np_eigh_rebuilt(a):
    """A function of the matrix: V sin(W) V^H."""
    w, v = np.linalg.eigh((a + _h(a)) / 2)
    return (v * np.sin(w)[..., None, :]) @ _h(v)


def _across(v, like):
    n = len(like.shape)
    return lax.broadcast_in_dim(v, like.shape, (*range(n - 2), n - 1))


def _as(v, like):
    return lax.convert_element_type(v, like.dtype)


def _eigh_rebuilt(a, **params):
    v, w = lax.eigh(a, **params)
    return matrices.matmul(elementwise.mul(v, _as(_across(lax.sin(w), v), v)), matrices.adjoint(v))


def _svd_rebuilt(x):
    """U sin(S) V^H, which phases of the vectors do not change."""
    u, s, vh = lax.svd(x, full_matrices=False)
    return matrices.matmul(elementwise.mul(u, _as(_across(lax.sin(s), u), u)), vh)


def _np_svd_rebuilt(x):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return (u * np.sin(s)[..., None, :]) @ vh


def _eig_sums(a):
    """Functions of the eigenvalues that their order does not change."""
    w = lax.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
    return [lax.reduce_sum(f(w), (len(w.shape) - 1,)) for f in (lax.sin, lax.square)]


def _np_eig_sums(a):
    w = np.linalg.eigvals(a)
    return tuple(f(w).sum(-1).astype(np.result_type(a.dtype, np.complex64)) for f in (np.sin, np.square))


def _eig_vectors(a):
    """|vl^H| |vr| weighted by eigenvalues: sums of outer products that order and phase do not change."""
    w, vl, vr = lax.eig(a, enable_eigvec_derivs=True)
    both = [matrices.matmul(elementwise.mul(v, _across(w, v)), matrices.adjoint(v)) for v in (vl, vr)]
    return both


def _schur_rebuilt(a):
    u, q = lax.schur(a)
    return [matrices.matmul(matrices.matmul(q, u), matrices.adjoint(q)), matrices.matmul(matrices.adjoint(q), q)]


def _identity_like(a):
    return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)


def _qr(**params):
    return lambda x: lax.qr(x, **params)


def _lower(a):
    """A well conditioned lower triangle; above it, elements that must not be read."""
    return elementwise.add(a, 3 * _identity_like(a))


def _np_solve(a, b, left, lower, transpose, conjugate, unit):
    n = a.shape[-1]
    a = (np.tril if lower else np.triu)(a + 3 * np.eye(n))
    if unit:
        a = a * (1 - np.eye(n)) + np.eye(n)
    a = _t(a) if transpose else a
    a = a.conj() if conjugate else a
    return np.linalg.solve(a, b) if left else _t(np.linalg.solve(_t(a), _t(b)))


def _triangular(name, a, b, **params):
    def fun(a, b):
        return lax.triangular_solve(_lower(a), b, **params)

    def oracle(a, b):
        get = lambda key: params.get(key, False)
        return _np_solve(
            a, b, get("left_side"), get("lower"), get("transpose_a"), get("conjugate_a"), get("unit_diagonal")
        )

    return OpCase(p.triangular_solve_p, name, fun, (a, b), oracle=oracle)


def _tridiagonal_matrix(dl, d, du):
    n = d.shape[-1]
    a = np.zeros((*d.shape, n), d.dtype)
    i = np.arange(n)
    a[..., i, i] = d
    a[..., i[1:], i[:-1]] = dl[..., 1:]
    a[..., i[:-1], i[1:]] = du[..., :-1]
    return a


def _np_tridiagonal_solve(dl, d, du, b):
    return np.linalg.solve(_tridiagonal_matrix(dl, d, du), b)


def _np_update(r, w):
    r = np.triu(r)
    return _t(np.linalg.cholesky(_t(r) @ r + w[..., :, None] * w[..., None, :]))


def _update(r, w):
    """With the sign of the rows that makes the diagonal positive."""
    out = lax.cholesky_update(r, w)
    diagonal = lax.reduce_sum(elementwise.mul(out, _identity_like(out)), (out.ndim - 1,))
    return elementwise.mul(out, lax.broadcast_in_dim(lax.sign(diagonal), out.shape, tuple(range(out.ndim - 1))))


def _np_householder(a, taus):
    q = np.broadcast_to(np.eye(a.shape[-2], dtype=a.dtype), (*a.shape[:-1], a.shape[-2])).copy()
    for i in range(taus.shape[-1]):
        v = np.tril(a, -1)[..., i].copy()
        v[..., i] = 1
        q = q - taus[..., i, None, None] * (q @ v[..., :, None]) * v.conj()[..., None, :]
    return q


def _tridiagonal_eigenvalues(a, lower):
    """Sums of powers of the eigenvalues of the tridiagonal matrix."""
    _, d, e, _ = lax.tridiagonal(a, lower=lower)
    return [
        lax.reduce_sum(d, (d.ndim - 1,)),
        elementwise.add(
            lax.reduce_sum(lax.square(d), (d.ndim - 1,)),
            elementwise.mul(lax.reduce_sum(lax.square(e), (d.ndim - 1,)), np.array(2, d.dtype)),
        ),
    ]


def _np_tridiagonal_eigenvalues(a, lower):
    w = np.linalg.eigvalsh(a, UPLO="L" if lower else "U")
    return tuple(x.astype(w.dtype) for x in (w.sum(-1), (w * w).sum(-1)))


_A, _C = arg((4, 4)), arg((3, 3), "complex64")

CASES = (
    [
        OpCase(p.cholesky_p, "matrix", lax.cholesky, (_spd(4),), oracle=lambda a: np.linalg.cholesky((a + _t(a)) / 2)),
        OpCase(p.cholesky_p, "batch_f64", lax.cholesky, (_spd(3, "float64", (2,)),), oracle=np.linalg.cholesky),
        OpCase(
            p.cholesky_p, "complex", lax.cholesky, (_spd(3, "complex64"),), oracle=np.linalg.cholesky, grad_rtol=1e-4
        ),
        OpCase(
            p.cholesky_p,
            "one_triangle",
            lambda a: lax.cholesky(a, symmetrize_input=False),
            (_spd(3) + np.triu(np.full((3, 3), 7, np.float32), 1),),
            oracle=np.linalg.cholesky,
            grad=(),
        ),
        OpCase(
            p.cholesky_p,
            "not_definite",
            lax.cholesky,
            (np.array([[[1, 2], [2, 1]], [[2, 1], [1, 2]]], np.float32),),
            oracle=lambda a: np.stack([np.array([[np.nan, 0], [np.nan, np.nan]]), np.linalg.cholesky(a[1])]),
            grad=(),
        ),
        OpCase(p.cholesky_p, "empty", lax.cholesky, (arg((2, 0, 0)),), oracle=lambda a: a, grad=()),
        OpCase(
            p.cholesky_update_p,
            "vector",
            _update,
            (_t(np.linalg.cholesky(_spd(4))), arg((4,))),
            oracle=_np_update,
            grad=(),
        ),
        OpCase(
            p.cholesky_update_p,
            "batch",
            _update,
            (_t(np.linalg.cholesky(_spd(3, "float64", (2,)))), arg((2, 3), "float64")),
            oracle=_np_update,
            grad=(),
        ),
        OpCase(p.lu_p, "packed", lax.lu, (_A,)),
        OpCase(p.lu_p, "product", _lu_product, (arg((2, 3, 3), "float64"),)),
        OpCase(p.lu_p, "tall", lax.lu, (arg((4, 2)),)),
        OpCase(p.lu_p, "wide_complex", lax.lu, (arg((2, 4), "complex64"),)),
        OpCase(p.lu_p, "singular", lax.lu, (np.zeros((2, 3, 3), np.float32),), grad=()),
        OpCase(
            p.lu_p,
            "empty",
            lax.lu,
            (arg((3, 0)),),
            grad=(),
            oracle=lambda a: (a, np.zeros(0, np.int32), np.arange(3, dtype=np.int32)),
        ),
        OpCase(
            p.lu_pivots_to_permutation_p,
            "vector",
            lambda x: lax.lu_pivots_to_permutation(x, 5),
            (np.array([2, 3, 2], np.int32),),
            oracle=lambda x: np.array([2, 3, 0, 1, 4], np.int32),
        ),
        OpCase(
            p.lu_pivots_to_permutation_p,
            "batch",
            lambda x: lax.lu_pivots_to_permutation(x, 3),
            (np.array([[2, 2], [0, 1], [1, 1]], np.int32),),
            oracle=lambda x: np.array([[2, 0, 1], [0, 1, 2], [1, 0, 2]], np.int32),
        ),
        OpCase(p.qr_p, "square", _qr(), (_separated(3),), oracle=lambda a: tuple(np.linalg.qr(a)), grad_rtol=1e-4),
        OpCase(
            p.qr_p,
            "reduced",
            _qr(full_matrices=False),
            (_tall(4, 2),),
            oracle=lambda a: tuple(np.linalg.qr(a)),
            grad_rtol=1e-4,
        ),
        OpCase(
            p.qr_p,
            "wide_batch",
            _qr(full_matrices=False),
            (_separated(4, "float64", (2,))[:, :3],),
            oracle=lambda a: tuple(np.linalg.qr(a)),
            grad_rtol=1e-4,
        ),
        OpCase(
            p.qr_p,
            "complex",
            _qr(full_matrices=False),
            (_tall(3, 2, "complex64"),),
            oracle=lambda a: tuple(np.linalg.qr(a)),
            grad_rtol=1e-4,
        ),
        OpCase(p.qr_p, "full", _qr(), (arg((4, 2)),), oracle=lambda a: tuple(np.linalg.qr(a, "complete")), grad=()),
        OpCase(
            p.qr_p, "pivoting", _qr(pivoting=True, full_matrices=False), (_tall(4, 3)[:, [1, 2, 0]],), grad_rtol=1e-4
        ),
        OpCase(p.qr_p, "pivoting_complex", _qr(pivoting=True), (_separated(3, "complex64", (2,)),), grad_rtol=1e-4),
        OpCase(p.qr_p, "empty", _qr(), (arg((3, 0)),), oracle=lambda a: (np.eye(3, dtype=np.float32), a), grad=()),
        OpCase(p.geqrf_p, "tall", lax.geqrf, (arg((4, 3)),), grad=()),
        OpCase(p.geqrf_p, "wide_complex", lax.geqrf, (arg((2, 2, 3), "complex64"),), grad=()),
        OpCase(p.geqp3_p, "free", lambda a: lax.geqp3(a, np.zeros(3, np.int32)), (arg((4, 3), "float64"),), grad=()),
        OpCase(
            p.householder_product_p,
            "reduced",
            lambda a: lax.householder_product(*lax.geqrf(a)),
            (arg((4, 3)),),
            oracle=lambda a: np.linalg.qr(a)[0],
            grad=(),
        ),
        OpCase(
            p.householder_product_p,
            "complex",
            lambda a: lax.householder_product(*lax.geqrf(a)),
            (arg((2, 3, 3), "complex64"),),
            oracle=lambda a: np.linalg.qr(a)[0],
            grad=(),
        ),
    ]
    + [
        OpCase(
            p.ormqr_p,
            f"{'left' if left else 'right'}_{'adjoint' if transpose else 'plain'}_{dtype}",
            lambda a, taus, c, left=left, transpose=transpose: lax.ormqr(a, taus, c, left=left, transpose=transpose),
            (arg((4, 2), dtype), np.array([1.2, 0.4], dtype), arg((4, 3) if left else (3, 4), dtype)),
            oracle=lambda a, taus, c, left=left, transpose=transpose: (
                (_h if transpose else lambda q: q)(_np_householder(a, taus)) @ c
                if left
                else c @ (_h if transpose else lambda q: q)(_np_householder(a, taus))
            ),
            grad=(2,),
        )
        for left in (True, False)
        for transpose in (True, False)
        for dtype in ("float32", "complex128")
    ]
    + [
        OpCase(p.eigh_p, "rebuilt", _eigh_rebuilt, (_separated(4),), oracle=_np_eigh_rebuilt, grad_rtol=1e-4),
        OpCase(
            p.eigh_p,
            "complex",
            _eigh_rebuilt,
            (_separated(3, "complex64", (2,)),),
            oracle=_np_eigh_rebuilt,
            grad_rtol=1e-4,
        ),
        OpCase(
            p.eigh_p,
            "upper",
            lambda a: lax.eigh(a, lower=False, symmetrize_input=False)[1],
            (_separated(3),),
            oracle=lambda a: np.linalg.eigvalsh(a, UPLO="U"),
            grad=(),
        ),
        OpCase(
            p.eigh_p,
            "subset",
            lambda a: lax.eigh(a, subset_by_index=(1, 3))[1],
            (_spd(4),),
            oracle=lambda a: np.linalg.eigvalsh(a)[1:3],
            rtol=1e-4,
        ),
        OpCase(p.eigh_p, "nan", lambda a: lax.eigh(a), (np.full((2, 2), np.nan, np.float32),), grad=()),
        OpCase(p.eig_p, "values", _eig_sums, (_separated(4),), oracle=_np_eig_sums, rtol=1e-4),
        OpCase(p.eig_p, "complex", _eig_sums, (_separated(3, "complex128", (2,)),), oracle=_np_eig_sums),
        OpCase(p.eig_p, "vectors", _eig_vectors, (_separated(3, "float64"),), grad_rtol=1e-4),
        OpCase(p.eig_p, "vectors_complex", _eig_vectors, (_separated(3, "complex64"),), rtol=1e-4, grad_rtol=1e-4),
        OpCase(p.eig_p, "rotation", _eig_sums, (np.array([[0, -1], [1, 0]], np.float32),), oracle=_np_eig_sums),
        OpCase(
            p.svd_p,
            "values",
            lambda x: lax.svd(x, compute_uv=False),
            (_tall(4, 3),),
            oracle=lambda x: np.linalg.svd(x, compute_uv=False),
            grad_rtol=1e-4,
        ),
        OpCase(p.svd_p, "tall", _svd_rebuilt, (_tall(4, 3),), oracle=_np_svd_rebuilt, grad_rtol=1e-4),
        OpCase(
            p.svd_p,
            "wide_batch",
            _svd_rebuilt,
            (_separated(4, "float64", (2,))[:, :2],),
            oracle=_np_svd_rebuilt,
            grad_rtol=1e-4,
        ),
        OpCase(
            p.svd_p,
            "complex",
            _svd_rebuilt,
            (_tall(3, 3, "complex64"),),
            oracle=_np_svd_rebuilt,
            rtol=1e-4,
            grad_rtol=1e-4,
        ),
        OpCase(
            p.svd_p,
            "subset",
            lambda x: lax.svd(x, full_matrices=False, subset_by_index=(1, 3))[1],
            (_tall(4, 3),),
            oracle=lambda x: np.linalg.svd(x, compute_uv=False)[1:3],
            grad_rtol=1e-4,
        ),
        OpCase(
            p.svd_p,
            "qr_algorithm",
            lambda x: lax.svd(x, compute_uv=False, algorithm=p.SvdAlgorithm.QR),
            (_tall(2, 3),),
            oracle=lambda x: np.linalg.svd(x, compute_uv=False),
            grad_rtol=1e-4,
        ),
        OpCase(
            p.svd_p,
            "empty",
            lambda x: lax.svd(x),
            (arg((0, 3)),),
            grad=(),
            oracle=lambda x: (np.zeros((0, 0), np.float32), np.zeros(0, np.float32), np.eye(3, dtype=np.float32)),
        ),
        OpCase(p.svd_p, "nan", lambda x: lax.svd(x), (np.full((2, 3), np.nan, np.float32),), grad=()),
        OpCase(p.schur_p, "real", _schur_rebuilt, (_A,), oracle=lambda a: (a, _identity_like(a)), grad=(), rtol=1e-4),
        OpCase(
            p.schur_p,
            "complex",
            _schur_rebuilt,
            (arg((2, 3, 3), "complex64"),),
            oracle=lambda a: (a, _identity_like(a)),
            grad=(),
            rtol=1e-4,
        ),
        OpCase(p.hessenberg_p, "real", lax.hessenberg, (_A,), grad=()),
        OpCase(p.hessenberg_p, "complex", lax.hessenberg, (arg((2, 3, 3), "complex128"),), grad=()),
        OpCase(p.tridiagonal_p, "packed", lax.tridiagonal, (_A,), grad=(), rtol=1e-4),
        OpCase(
            p.tridiagonal_p,
            "packed_upper",
            lambda a: lax.tridiagonal(a, lower=False),
            (arg((2, 3, 3), "complex128"),),
            grad=(),
        ),
        OpCase(
            p.tridiagonal_p,
            "eigenvalues",
            lambda a: _tridiagonal_eigenvalues(a, False),
            (arg((4, 4), "float64"),),
            oracle=lambda a: _np_tridiagonal_eigenvalues(a, False),
            grad=(),
        ),
        _triangular("plain", _A, arg((2, 4))),
        _triangular("left_lower", _A, arg((4, 2)), left_side=True, lower=True),
        _triangular(
            "left_transposed", arg((2, 3, 3), "float64"), arg((2, 3, 2), "float64"), left_side=True, transpose_a=True
        ),
        _triangular("unit", _A, arg((4, 2)), left_side=True, lower=True, unit_diagonal=True),
        _triangular("conjugate", _C, arg((2, 3), "complex64"), lower=True, conjugate_a=True),
        _triangular("adjoint", _C, arg((3, 2), "complex64"), left_side=True, transpose_a=True, conjugate_a=True),
        OpCase(
            p.triangular_solve_p,
            "vector",
            lambda a, b: lax.triangular_solve(_lower(a), b, left_side=True, lower=True),
            (_A, arg((4,))),
            oracle=lambda a, b: _np_solve(a, b, True, True, False, False, False),
        ),
        OpCase(
            p.triangular_solve_p,
            "empty",
            lambda a, b: lax.triangular_solve(a, b, left_side=True),
            (arg((0, 0)), arg((0, 2))),
            oracle=lambda a, b: b,
            grad=(),
        ),
        OpCase(
            p.tridiagonal_solve_p,
            "pivoted",
            lax.tridiagonal_solve,
            (arg((4,)), arg((4,)), arg((4,), low=3, high=4), arg((4, 2))),
            oracle=_np_tridiagonal_solve,
            rtol=1e-4,
            grad_rtol=1e-4,
        ),
        OpCase(
            p.tridiagonal_solve_p,
            "dominant_batch",
            lax.tridiagonal_solve,
            (arg((2, 3), "float64"), arg((2, 3), "float64", 5, 6), arg((2, 3), "float64"), arg((2, 3, 1), "float64")),
            oracle=lambda dl, d, du, b: _np_tridiagonal_solve(dl, d, du, b),
        ),
        OpCase(
            p.tridiagonal_solve_p,
            "complex",
            lax.tridiagonal_solve,
            (arg((3,), "complex64"), arg((3,), "complex64", 4, 5), arg((3,), "complex64"), arg((3, 2), "complex64")),
            oracle=_np_tridiagonal_solve,
        ),
        OpCase(
            p.tridiagonal_solve_p,
            "perturb_regular",
            lambda *xs: lax.tridiagonal_solve(*xs, perturb_singular=True),
            (arg((3,)), arg((3,), low=5, high=6), arg((3,)), arg((3, 2))),
            oracle=_np_tridiagonal_solve,
        ),
        OpCase(
            p.symmetric_product_p,
            "update",
            lambda a, c: lax.symmetric_product(
                a, matrices.triangle(c, True), alpha=2.0, beta=0.5, symmetrize_output=True
            ),
            (arg((3, 2)), arg((3, 3))),
            oracle=lambda a, c: np.tril(2 * a @ a.T + 0.5 * np.tril(c)) + np.tril(2 * a @ a.T + 0.5 * np.tril(c), -1).T,
        ),
        OpCase(
            p.symmetric_product_p,
            "batch",
            lax.symmetric_product,
            (arg((2, 3, 2), "float64"), arg((2, 3, 3), "float64")),
            oracle=lambda a, c: a @ _t(a),
        ),
    ]
)
