"""Linear algebra: packed forms against SciPy's LAPACK, failures, errors, and forms that records cannot compare."""

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import lapack

from bedrax import lax
from bedrax.core import config
from bedrax.lax.primitives import linalg as p

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def _wide():
    with config.enable_x64(True):
        yield


def _random(*shape, dtype="float64"):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def _close(actual, expected, rtol=None):
    actual = np.asarray(actual)
    rtol = rtol or 2e3 * np.finfo(actual.dtype).eps
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * scale)


def _h(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (7, 4), (3, 5), (20, 20)])
def test_lu_is_that_of_lapack(dtype, shape):
    a = _random(*shape, dtype=dtype)
    lu, pivots, order = map(np.asarray, lax.lu(a))
    (getrf,) = lapack.get_lapack_funcs(("getrf",), (a,))
    want, want_pivots, _ = getrf(a)
    np.testing.assert_array_equal(pivots, want_pivots)
    _close(lu, want)
    k = min(shape)
    l = np.tril(lu[:, :k], -1) + np.eye(shape[0], k, dtype=dtype)
    _close(l @ np.triu(lu[:k]), a[order])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (3, 6)])
def test_packed_qr_is_that_of_lapack(dtype, shape):
    a = _random(*shape, dtype=dtype)
    geqrf, geqp3 = lapack.get_lapack_funcs(("geqrf", "geqp3"), (a,))
    for got, want in zip(lax.geqrf(a), geqrf(a), strict=False):
        _close(got, want)
    for got, want in zip(lax.geqp3(a, np.zeros(shape[1], np.int32)), geqp3(a), strict=False):
        _close(got, want) if np.asarray(got).dtype.kind in "fc" else np.testing.assert_array_equal(got, want)


def test_marked_columns_stay_in_front():
    a = _random(4, 3)
    packed, order, taus = lax.geqp3(a, np.array([0, 0, 1], np.int32))
    assert np.asarray(order)[0] == 3
    q = np.asarray(lax.householder_product(packed, taus))
    _close(q @ np.triu(packed)[:3], a[:, np.asarray(order) - 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_pivoted_qr_orders_the_diagonal(dtype):
    a = _random(2, 5, 4, dtype=dtype) * np.array([1, 10, 0.1, 3]).astype(dtype)
    q, r, order = map(np.asarray, lax.qr(a, pivoting=True, full_matrices=False))
    diagonal = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
    assert (diagonal[:, 1:] <= diagonal[:, :-1] * (1 + 1e-5)).all()
    _close(q @ r, np.take_along_axis(a, order[:, None, :].astype(int), -1))
    _close(_h(q) @ q, np.broadcast_to(np.eye(4), (2, 4, 4)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_tridiagonal_form_is_that_of_lapack(dtype, lower):
    a = _random(6, 6, dtype=dtype)
    (sytrd,) = lapack.get_lapack_funcs(("hetrd" if a.dtype.kind == "c" else "sytrd",), (a,))
    want = sytrd(a, lower=lower)
    for got, w in zip(lax.tridiagonal(a, lower=lower), want, strict=False):
        _close(got, w)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hessenberg_form_is_that_of_lapack(dtype):
    a = _random(6, 6, dtype=dtype)
    (gehrd,) = lapack.get_lapack_funcs(("gehrd",), (a,))
    for got, w in zip(lax.hessenberg(a), gehrd(a), strict=False):
        _close(got, w)


def _special_matrices():
    jordan = np.diag(np.full(4, 2.0)) + np.diag(np.ones(3), 1)
    cycle = np.roll(np.eye(5), 1, axis=0)  # its eigenvalues are on a circle: unshifted QR steps leave it as it is
    return [np.zeros((3, 3)), np.eye(3), jordan, jordan.T, cycle, np.diag([1e200, 1.0, 1e-200]), _random(12, 12),
            np.array([[1.0, 1e-9], [1e9, 1.0]]), np.array([[0.0, 1], [-1, 0]]), np.ones((4, 4)), np.zeros((0, 0))]  # fmt: skip


@pytest.mark.parametrize("a", _special_matrices(), ids=range(11))
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_schur_form(a, dtype):
    u, q = map(np.asarray, lax.schur(a.astype(dtype)))
    scale = max(1.0, np.abs(a).max(initial=0))
    np.testing.assert_allclose(q @ u @ _h(q) / scale, a / scale, atol=1e-13)
    np.testing.assert_allclose(_h(q) @ q, np.eye(len(a)), atol=1e-13)
    if dtype == "complex128":
        assert not np.tril(u, -1).any()
        return
    assert not np.tril(u, -2).any()
    for i in range(len(a) - 1):
        if u[i + 1, i]:  # a pair of conjugate eigenvalues, in standard form, and no adjacent block
            assert u[i, i] == u[i + 1, i + 1] and u[i, i + 1] * u[i + 1, i] < 0
            assert i == 0 or u[i, i - 1] == 0


def test_eigenvalues_of_a_batch_with_a_broken_matrix():
    a = _random(3, 4, 4)
    a[1, 0, 0] = np.nan
    for name, results in (("eig", lax.eig(a)), ("eigh", lax.eigh(a)), ("svd", lax.svd(a)), ("schur", lax.schur(a))):
        for r in map(np.asarray, results):
            assert np.isnan(r[1]).all(), name
            assert np.isfinite(r[[0, 2]]).all(), name
    bad = np.stack([np.eye(2), -np.eye(2)])
    np.testing.assert_array_equal(lax.cholesky(bad), [np.eye(2), [[np.nan, 0], [np.nan, np.nan]]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_left_eigenvectors(dtype):
    a = _random(3, 5, 5, dtype=dtype)
    w, vl, vr = map(np.asarray, lax.eig(a))
    _close(a @ vr, vr * w[:, None, :])
    _close(_h(vl) @ a, w[:, :, None] * _h(vl))
    for v in (vl, vr):
        _close(np.linalg.norm(v, axis=-2), np.ones((3, 5)))


@pytest.mark.parametrize("n", [1, 2, 17, 40])
@pytest.mark.parametrize("left", [True, False])
def test_triangular_solve_of_any_size(n, left):
    a = _random(n, n) / n + 2 * np.eye(n)
    b = _random(n, 3) if left else _random(3, n)
    for lower in (True, False):
        t = np.tril(a) if lower else np.triu(a)
        x = np.asarray(lax.triangular_solve(a, b, left_side=left, lower=lower))
        _close(t @ x if left else x @ t, b)


def test_singular_systems():
    singular = np.array([[1.0, 1], [0, 0]])
    assert not np.isfinite(lax.triangular_solve(singular, np.ones((2, 1)), left_side=True)).all()
    zeros = np.zeros(3)
    assert np.isnan(lax.tridiagonal_solve(zeros, zeros, zeros, np.ones((3, 1)))).all()
    perturbed = lax.tridiagonal_solve(zeros, np.array([1.0, 0, 2]), zeros, np.ones((3, 1)), perturb_singular=True)
    assert np.isfinite(perturbed).all() and abs(np.asarray(perturbed)[1, 0]) > 1e12


@pytest.mark.parametrize("dtype", DTYPES)
def test_polar_decomposition(dtype):
    a = _random(6, 4, dtype=dtype)
    u, h, steps, converged = lax.qdwh(a)
    for got, want in zip((u, h), scipy.linalg.polar(a), strict=True):
        _close(got, want)
    assert bool(converged) and 0 < int(steps) <= 10
    padded = np.pad(a, ((0, 2), (0, 1)), constant_values=7)
    u2, *_ = lax.qdwh(padded, dynamic_shape=(6, 4))
    _close(np.asarray(u2)[:6, :4], u)
    assert not np.asarray(u2)[6:].any() and not np.asarray(u2)[:, 4:].any()
    with pytest.raises(ValueError, match="at least as many rows as columns"):
        lax.qdwh(a.T)


_S, _X, _V = np.eye(4), np.ones((2, 5, 4)), np.ones((2, 4))


@pytest.mark.parametrize(
    "f, error, message",
    [
        (lambda: lax.cholesky(_X), ValueError, "cholesky takes square matrices, got shape"),
        (lambda: lax.lu(_V[0]), TypeError, "or more, got shape"),
        (lambda: lax.eigh(_X), ValueError, "eigh takes square matrices, got shape"),
        (lambda: lax.triangular_solve(_X, _X), ValueError, "triangular_solve takes square matrices first, got shape"),
        (lambda: lax.triangular_solve(_S, np.ones((3, 5))), ValueError, "does not fit b of shape"),
        (lambda: lax.triangular_solve(_S, _S.astype(np.float32)), TypeError, "takes operands of one dtype"),
        (
            lambda: lax.triangular_solve(np.ones((2, 4, 4)), np.ones((3, 4, 4))),
            TypeError,
            "inputs have equal batch axes, got",
        ),
        (lambda: lax.householder_product(_X, np.ones((2, 5))), ValueError, "at most one per column"),
        (lambda: lax.householder_product(np.ones((4, 5)), np.ones(4)), ValueError, r"with m >= n, got shape \(4, 5\)"),
        (lambda: lax.tridiagonal_solve(_V[0], _V[0], _V[0], _V[0]), TypeError, "tridiagonal_solve takes rank"),
        (lambda: lax.tridiagonal_solve(_V[0], _V[0], _V[0], np.ones((5, 2))), TypeError, "do not fit b"),
        (lambda: lax.ormqr(_X, _V, np.ones((2, 4, 3))), ValueError, "the rows of c"),
        (lambda: lax.symmetric_product(_X, _X), ValueError, "needs c of shape"),
        (lambda: lax.symmetric_product(_S + 0j, _S + 0j), TypeError, "does not accept dtype complex128"),
        (lambda: lax.cholesky_update(np.ones((5, 4)), _V[0]), ValueError, r"takes a factor \[n, n\] and a vector"),
        (lambda: lax.svd(_S, subset_by_index=(0, 2)), ValueError, "subset_by_index takes some vectors, full_matrices"),
        (lambda: lax.eigh(_S, subset_by_index=(0, 9)), ValueError, r"is not a range within"),
        (lambda: lax.schur(_S, sort_eig_vals=True), NotImplementedError, "cannot be sorted"),
        (lambda: lax.lu_pivots_to_permutation(np.ones((2, 4), np.int32), 3), ValueError, "is less than"),
        (lambda: lax.cholesky(_S.astype(np.float16)), NotImplementedError, "float16; convert"),
    ],
)
def test_errors(f, error, message):
    with pytest.raises(error, match=message):
        f()


def test_integers_become_floats():
    with config.enable_x64(False):
        assert lax.cholesky(np.eye(2, dtype=np.int32)).dtype == np.float32
        assert p.svd(np.eye(2, dtype=np.int32), compute_uv=False).dtype == np.float32
