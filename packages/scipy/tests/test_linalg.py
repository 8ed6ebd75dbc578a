"""Linear algebra against SciPy in float64, and derivatives against finite differences."""

import numpy as np
import pytest
import scipy.linalg as sp

import bedrax.numpy as jnp
from bedrax.autodiff import check_grads, vjp
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.core.passes import all_equations
from bedrax.core.staging import make_jaxpr
from bedrax.scipy import linalg
from bedrax.scipy.linalg import matrix_functions


@pytest.fixture(autouse=True)
def float64():
    with config.enable_x64(True):
        yield


RNG = np.random.default_rng(0)
N = 5
A, B = RNG.standard_normal((2, N, N))
C = A + 1j * B
P = A @ A.T + np.eye(N)
H = C @ C.conj().T + np.eye(N)
b = RNG.standard_normal(N)


def close(actual, expected, tolerance=1e-9):
    actual, expected = (x if isinstance(x, tuple | list) else (x,) for x in (actual, expected))
    assert len(actual) == len(expected)
    for x, y in zip(actual, expected, strict=True):
        assert x.shape == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("a", [P, H])
def test_cholesky(a, lower):
    close(linalg.cholesky(a, lower=lower), sp.cholesky(a, lower=lower))
    close(linalg.cho_solve(linalg.cho_factor(a, lower=lower), B), np.linalg.solve(a, B))
    close(linalg.solve(a, b, assume_a="pos", lower=lower), np.linalg.solve(a, b))


@pytest.mark.parametrize("a", [A, A[:, :3], A[:3], C])
def test_factorizations_of_any_shape(a):
    close(linalg.lu(a), sp.lu(a))
    close(linalg.lu(a, permute_l=True), sp.lu(a, permute_l=True))
    for mode in ("full", "economic", "r"):
        for pivoting in (False, True):
            got, want = linalg.qr(a, mode=mode, pivoting=pivoting), sp.qr(a, mode=mode, pivoting=pivoting)
            close([abs(x) for x in got], [abs(x) for x in want])  # signs are not unique
    close(linalg.svd(a, compute_uv=False), sp.svd(a, compute_uv=False))


def test_a_vector_for_each_matrix():
    batch, vectors = np.stack([A + 4 * np.eye(N), P, H.real, 2 * P, 3 * P]), RNG.standard_normal((N, N))  # 5 of 5 by 5
    each = lambda solve: np.stack([solve(a, v) for a, v in zip(batch, vectors, strict=True)])
    with pytest.warns(FutureWarning, match="a vector for each matrix"):
        close(linalg.solve_triangular(batch, vectors), each(sp.solve_triangular))
        close(linalg.lu_solve(linalg.lu_factor(batch), vectors), each(np.linalg.solve))
    with pytest.warns(FutureWarning, match="a vector for each matrix"):
        close(
            linalg.cho_solve((sp.cholesky(P) * np.ones((2, 1, 1)), False), vectors[:2])[1],
            np.linalg.solve(P, vectors[1]),
        )
    close(linalg.solve(batch, vectors)[2], np.linalg.solve(H.real, vectors))  # there it is a matrix for all


@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("rhs", [b, B])
def test_solutions(trans, rhs):
    close(linalg.lu_solve(linalg.lu_factor(C), rhs, trans=trans), sp.lu_solve(sp.lu_factor(C), rhs, trans=trans))
    for lower in (False, True):
        expected = sp.solve_triangular(C, rhs, trans=trans, lower=lower, unit_diagonal=True)
        close(linalg.solve_triangular(C, rhs, trans=trans, lower=lower, unit_diagonal=True), expected)
    batch = np.stack([C, 2 * C])
    three = B[:, :3]
    close(linalg.solve_triangular(batch, three, trans=trans)[1], sp.solve_triangular(2 * C, three, trans=trans))
    close(linalg.solve(A, rhs), sp.solve(A, rhs))
    close(linalg.inv(A), sp.inv(A))
    close(linalg.det(A), sp.det(A))


@pytest.mark.parametrize("mode", ["left", "right"])
@pytest.mark.parametrize("pivoting", [False, True])
def test_products_with_q(mode, pivoting):
    for c in (B, b):
        close(
            linalg.qr_multiply(A, c, mode=mode, pivoting=pivoting), sp.qr_multiply(A, c, mode=mode, pivoting=pivoting)
        )


def test_eigenvalues():
    w, v = linalg.eigh(H)
    close(w, sp.eigh(H)[0])
    close(H @ v, np.asarray(v) * np.asarray(w))
    d, e = RNG.standard_normal(N), RNG.standard_normal(N - 1)
    w, v = linalg.eigh_tridiagonal(d, e)
    close(w, sp.eigh_tridiagonal(d, e)[0])
    options = {"eigvals_only": True, "select": "i", "select_range": (1, 3)}
    close(linalg.eigh_tridiagonal(d, e, **options), sp.eigh_tridiagonal(d, e, **options))
    with pytest.raises(NotImplementedError, match="unknown shape"):
        linalg.eigh_tridiagonal(d, e, select="v", select_range=(0, 1))
    with pytest.raises(NotImplementedError, match="b=None"):
        linalg.eigh(P, P)


def test_schur_forms():
    for output in ("real", "complex"):
        t, z = linalg.schur(A, output=output)
        close(z @ t @ jnp.conj(z.T), A)
    t, z = linalg.rsf2csf(*sp.schur(A))
    close(np.tril(t, -1), np.zeros((N, N)))
    close(z @ t @ jnp.conj(z.T), A)
    close(z @ jnp.conj(z.T), np.eye(N))
    close(linalg.hessenberg(A, calc_q=True), sp.hessenberg(A, calc_q=True))
    with pytest.raises(ValueError, match="output"):
        linalg.schur(A, output="both")


def test_polar_decomposition():
    for method in ("qdwh", "svd"):
        close(linalg.polar(A[:, :3], method=method), sp.polar(A[:, :3]))
        close(linalg.polar(C[:3], side="left", method=method), sp.polar(C[:3], side="left"))
    with pytest.raises(NotImplementedError, match="svd"):
        linalg.polar(A[:3])


@pytest.mark.parametrize("size", [0, 1e-3, 0.3, 1, 10, 60])
@pytest.mark.parametrize("a", [A, C])
def test_exponential(a, size):
    expected = sp.expm(size * a)
    scale = abs(expected).max()
    close(np.asarray(linalg.expm(size * a)) / scale, expected / scale)


def test_exponential_of_batches_and_its_limits():
    close(linalg.expm(np.stack([A, 7 * A])), np.stack([sp.expm(A), sp.expm(7 * A)]))
    close(linalg.expm(np.triu(A), upper_triangular=True), sp.expm(np.triu(A)))
    assert np.isnan(np.asarray(linalg.expm(A * 1e7))).all()
    assert linalg.expm(A.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(linalg.expm(A.astype(np.float32)), sp.expm(A), rtol=1e-4, atol=1e-4)
    close(linalg.expm_frechet(A, B), sp.expm_frechet(A, B))
    with pytest.raises(ValueError, match="square"):
        linalg.expm(A[:3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_the_norm_chooses_the_degree_of_the_exponential(dtype):
    """Every degree is exact to rounding just below the norm that ends its range, alone, in a batch, and under vmap."""
    bounds = matrix_functions._SINGLE if np.finfo(dtype).bits == 32 else matrix_functions._DOUBLE
    a = C.astype(dtype) if np.issubdtype(dtype, np.complexfloating) else A.astype(dtype)
    norms = np.array([*bounds.values(), 40.0]) * 0.999
    batch = (a / abs(a).sum(0).max() * norms[:, None, None]).astype(dtype)
    expected = np.stack([sp.expm(x.astype(np.complex128)) for x in batch])
    scale = abs(expected).max((1, 2), keepdims=True)
    compute = jit(linalg.expm)
    for got in (np.stack([compute(x) for x in batch]), compute(batch), vmap(compute)(batch)):
        assert got.dtype == dtype
        np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=40 * np.finfo(dtype).eps)
    for x in batch.astype(np.result_type(dtype, np.float64)):
        y = B.astype(x.dtype)
        want = sp.expm_frechet(x, y, compute_expm=False)
        forward = linalg.expm_frechet(x, y, compute_expm=False)
        (backward,) = vjp(linalg.expm, x)[1](y.T)  # of trace(y L(x, e)) = trace(L(x, y) e)
        for got in forward, np.asarray(backward).T:
            np.testing.assert_allclose(got / abs(want).max(), want / abs(want).max(), rtol=0, atol=1e-13)


def test_the_number_of_products_of_the_exponential_grows_with_the_norm():
    """The branches have as many products as Higham's table 2.2 states; one for the square and one for the odd part stand outside."""
    for dtype, expected in ((np.float32, [0, 1, 2]), (np.float64, [0, 1, 2, 3, 4])):
        program = make_jaxpr(linalg.expm)(jnp.zeros((4, 4), dtype))
        choices = [eqn.params["branches"] for eqn in all_equations(program.jaxpr) if eqn.primitive.name == "cond"]
        (branches,) = (found for found in choices if len(found) == len(expected))
        assert [str(branch).count("dot_general") for branch in branches] == expected


def test_functions_through_the_schur_form():
    for a in (A, P, C):
        close(linalg.sqrtm(a), sp.sqrtm(a))
    close(linalg.sqrtm(-P), sp.sqrtm(-P))
    close(linalg.funm(A, jnp.exp), sp.expm(A))
    _, error = linalg.funm(A, jnp.exp, disp=False)
    assert 0 < error < 1e-10
    for method in ("schur", "eigen"):
        x = linalg.solve_sylvester(A, B[:3, :3], B[:, :3], method=method)
        close(x, sp.solve_sylvester(A, B[:3, :3], B[:, :3]))
    assert np.isnan(np.asarray(linalg.solve_sylvester(np.eye(2), -np.eye(2), np.eye(2)))).all()


def test_derivatives():
    check_grads(linalg.expm, (A,), order=2, rtol=1e-4, atol=1e-4)
    check_grads(lambda a, b: linalg.cho_solve(linalg.cho_factor(a @ a.T + np.eye(N)), b), (A, b), order=1, rtol=1e-5)
    check_grads(lambda a, b: linalg.solve_triangular(a, b, lower=True), (A + 3 * np.eye(N), b), order=1, rtol=1e-5)
    check_grads(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), (A, b), order=1, rtol=1e-4)


V, W = RNG.standard_normal(5), RNG.standard_normal(7)
W[0] = V[-1]
SPECIAL = [
    ("toeplitz", V, W), ("toeplitz", 1j * V), ("hankel", V, W), ("hankel", V), ("circulant", V), ("companion", V),
    ("fiedler", V), ("hadamard", 8), ("helmert", 5), ("helmert", 5, True), ("hilbert", 5), ("invhilbert", 5), ("pascal", 6),
    ("pascal", 4, "lower"), ("pascal", 4, "upper"), ("invpascal", 6), ("invpascal", 4, "lower"), ("invpascal", 4, "upper"),
    ("leslie", V, V[1:]), ("dft", 5), ("dft", 5, "sqrtn"), ("dft", 5, "n"), ("block_diag", A, b, 3.0),
    *(("fiedler_companion", W[:k]) for k in range(2, 8)),
    *(("convolution_matrix", V, n, mode) for n in (3, 5, 8) for mode in ("full", "same", "valid")),
]  # fmt: skip


@pytest.mark.parametrize("name,args", [(name, args) for name, *args in SPECIAL])
def test_special_matrices(name, args):
    close(getattr(linalg, name)(*args), getattr(sp, name)(*args))


def test_wrong_arguments_of_special_matrices_are_refused():
    with pytest.raises(ValueError, match="power of 2"):
        linalg.hadamard(6)
    with pytest.raises(ValueError, match="at most, got shape"):
        linalg.block_diag(np.ones((1, 1, 1)))
    with pytest.raises(ValueError, match="scale"):
        linalg.dft(3, scale="half")
    for real in (np.float16, np.float32, int):
        with pytest.raises(ValueError, match="dft: dtype is a complex dtype"):
            linalg.dft(3, dtype=real)
    assert linalg.block_diag().shape == (1, 0)


def test_derivatives_of_tridiagonal_eigenvalues():
    """Both sides of the matrix follow `e`: reading one triangle gave the derivative of another matrix."""
    check_grads(lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), (b, b[:-1] + 2), order=2)
