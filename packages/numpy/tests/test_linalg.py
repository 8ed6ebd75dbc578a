"""Linear algebra against NumPy in float64, and derivatives against finite differences."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax.autodiff import grad, jvp, vjp
from bedrax.batching import vmap
from bedrax.core import config, make_jaxpr
from bedrax.numpy import linalg
from bedrax.pytree import tree_leaves


def draw(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng([seed, *shape]).standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * np.random.default_rng([seed + 1, *shape]).standard_normal(shape)
    return x.astype(dtype)


def matrices(*shape, dtype=np.float32, seed=0):
    """Square matrices that are well conditioned."""
    return (draw(*shape, dtype=dtype, seed=seed) + 3 * np.eye(shape[-1])).astype(dtype)


def same(found, expected, tolerance=1e-3):
    if isinstance(expected, tuple):
        for f, e in zip(found, expected, strict=True):
            same(f, e, tolerance)
        return
    found = np.asarray(found)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def wide(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def check(name, *args, numpy=None, **kwargs):
    expected = (numpy or getattr(np.linalg, name))(
        *(wide(a) if isinstance(a, np.ndarray) else a for a in args), **kwargs
    )
    same(getattr(linalg, name)(*args, **kwargs), expected)


SQUARE = [(1, 1), (2, 2), (3, 3), (5, 5), (2, 4, 4), (2, 3, 2, 2)]
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.complex64])


@BOTH
@pytest.mark.parametrize("shape", SQUARE)
def test_square(shape, dtype):
    m = matrices(*shape, dtype=dtype)
    positive = m @ m.conj().swapaxes(-1, -2)
    check("det", m)
    check("slogdet", m)
    same(tuple(linalg.slogdet(m, method="qr")), tuple(np.linalg.slogdet(wide(m))))
    check("inv", m)
    check("solve", m, draw(*shape[:-1], 2, dtype=dtype, seed=5))
    check("cholesky", positive)
    check("cholesky", positive, upper=True)
    check("eigvalsh", positive)
    for n in (3, -2, 0, 1):
        check("matrix_power", m, n)
    for p in (None, 1, -1, np.inf, -2, "fro"):
        check("cond", m, p)


@BOTH
@pytest.mark.parametrize("shape", SQUARE)
def test_eigendecompositions(shape, dtype):
    m = draw(*shape, dtype=dtype)
    adjoint = lambda v: np.conj(v).swapaxes(-1, -2)
    hermitian = m + adjoint(m)
    for uplo in ("L", "U"):
        w, v = map(np.asarray, linalg.eigh(hermitian, uplo))
        same((v * w[..., None, :]) @ adjoint(v), hermitian)
        assert (np.diff(w) >= 0).all()
    u, s, vh = map(np.asarray, linalg.svd(hermitian, hermitian=True))
    same((u * s[..., None, :]) @ vh, hermitian)
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    result = linalg.eig(m)
    w, v = map(np.asarray, (result.eigenvalues, result.eigenvectors))
    same(m @ v, v * w[..., None, :])
    same(np.sort_complex(np.asarray(linalg.eigvals(m)).ravel()).sum(), w.sum())


@BOTH
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 4, 3)])
def test_rectangular(shape, dtype):
    a = draw(*shape, dtype=dtype)
    k = min(shape[-2:])
    for mode in ("reduced", "complete"):
        q, r = map(np.asarray, linalg.qr(a, mode))
        same(q @ r, a)
        same(q.conj().swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *[q.shape[-1]] * 2)))
    same(linalg.qr(a, "r"), np.asarray(linalg.qr(a)[1]))
    u, s, vh = map(np.asarray, linalg.svd(a, full_matrices=False))
    same((u * s[..., None, :]) @ vh, a)
    assert linalg.svd(a)[0].shape == (*shape[:-1], shape[-2])
    check("svdvals", a)
    check("pinv", a)
    check("matrix_rank", a)
    low = a[..., :1] * a[..., :1, :]
    assert (np.asarray(linalg.matrix_rank(low)) == 1).all() and k > 1
    p = np.asarray(linalg.pinv(low))
    same(low @ p @ low, low)
    same(p @ low @ p, p)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_lstsq(shape):
    a, b = draw(*shape), draw(shape[0], 2, seed=3)
    check("lstsq", a, b, numpy_resid=True, numpy=lambda a, b, numpy_resid: np.linalg.lstsq(a, b, rcond=None))
    x, residuals, rank, s = linalg.lstsq(a, b[:, 0])
    same(x, np.linalg.lstsq(a, b[:, 0], rcond=None)[0])
    same(residuals, np.sum((a @ np.asarray(x) - b[:, 0]) ** 2, keepdims=True))
    assert int(rank) == min(shape) and s.shape == (min(shape),)


def test_vector_right_hand_side():
    m = matrices(4, 4)
    check("solve", m, draw(4))
    check("solve", matrices(2, 4, 4), draw(4), numpy=lambda a, b: np.linalg.solve(a, b[:, None])[..., 0])
    check("solve", m, draw(3, 4, 2))


def test_tensors():
    check("tensorinv", draw(4, 6, 8, 3))
    check("tensorsolve", draw(2, 3, 6), draw(2, 3))
    check("tensorsolve", draw(2, 6, 3), draw(2, 3), axes=(1,))


X = draw(3, 4, 5)


@pytest.mark.parametrize("order", [None, 1, 2, 0, np.inf, -np.inf, 3, -1, 0.5])
def test_vector_norms(order):
    check("norm", X[0, 0], order)
    check("norm", X, order, axis=1, keepdims=True)
    check("vector_norm", X, axis=(0, 2), ord=2 if order is None else order)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms(order):
    check("norm", X[0], order)
    check("norm", X, order, axis=(2, 0), keepdims=True)
    check("matrix_norm", X, ord="fro" if order is None else order)


def test_array_api_names():
    check("norm", X)
    check("norm", draw(3, 4, dtype=np.complex64))
    check("diagonal", X, offset=1)
    check("trace", X, offset=-1)
    check("outer", X[0, 0], X[1, 1])
    check("cross", draw(4, 3), draw(4, 3, seed=2))
    check("matrix_transpose", X)
    check("matmul", X, X.swapaxes(1, 2))
    check("tensordot", X, X, axes=3)
    check("vecdot", X, X)


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda: linalg.inv(draw(2, 3)), ValueError, "square"),
        (lambda: linalg.svd(draw(3)), ValueError, r"\[..., m, n\]"),
        (lambda: linalg.qr(draw(2, 2), "other"), ValueError, "qr: mode is"),
        (lambda: linalg.slogdet(draw(2, 2), method="x"), ValueError, "method is 'lu'"),
        (lambda: linalg.eigh(draw(2, 2), "X"), ValueError, "UPLO is one of None"),
        (lambda: linalg.solve(draw(2, 2), draw(3)), ValueError, "do not fit"),
        (lambda: linalg.norm(draw(2, 2), 7), ValueError, "Invalid order"),
        (lambda: linalg.norm(draw(2), "fro", axis=0), ValueError, "Invalid order"),
        (lambda: linalg.norm(draw(2, 2, 2), 2), ValueError, "Improper number of axes"),
        (lambda: linalg.matrix_power(draw(2, 2), 1.5), TypeError, "exponent must be an integer"),
        (lambda: linalg.pinv(draw(2, 2), rtol=1, rcond=1), ValueError, "only one of"),
        (lambda: linalg.cross(draw(2), draw(2)), ValueError, "cross takes vectors of"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


# Derivatives


def directional(f, x, t, h=1e-5):
    """The derivative of a NumPy function in float64."""
    x, t = wide(x), wide(t)
    return (f(x + h * t) - f(x - h * t)) / (2 * h)


FUNCTIONS = {
    "det": (linalg.det, np.linalg.det),
    "logabsdet": (lambda a: linalg.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1]),
    "sign": (lambda a: linalg.slogdet(a)[0], lambda a: np.linalg.slogdet(a)[0]),
    "inv": (linalg.inv, np.linalg.inv),
    "pinv": (linalg.pinv, np.linalg.pinv),
    "solve": (lambda a: linalg.solve(a, a[..., :2] ** 2), lambda a: np.linalg.solve(a, a[..., :2] ** 2)),
    "cholesky": (
        lambda a: linalg.cholesky(a @ jnp.conj(a).mT),
        lambda a: np.linalg.cholesky(a @ a.conj().swapaxes(-1, -2)),
    ),
    "norm": (linalg.norm, np.linalg.norm),
    "nuclear": (lambda a: linalg.norm(a, "nuc", axis=(-2, -1)), lambda a: np.linalg.norm(a, "nuc", axis=(-2, -1))),
    "eigvalsh": (
        lambda a: linalg.eigvalsh(a + jnp.conj(a).mT),
        lambda a: np.linalg.eigvalsh(a + a.conj().swapaxes(-1, -2)),
    ),
}


@BOTH
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(2, 2), (5, 5), (2, 4, 4)])
def test_derivatives(name, shape, dtype):
    ours, theirs = FUNCTIONS[name]
    a, t = matrices(*shape, dtype=dtype), draw(*shape, dtype=dtype, seed=8)
    out, change = jvp(ours, (a,), (t,))
    same(out, theirs(wide(a)), 2e-3)
    expected = directional(theirs, a, t)
    scale = 1 + np.abs(expected).max()
    same(np.asarray(change) / scale, expected / scale, 2e-3)
    ct = draw(*out.shape, dtype=out.dtype, seed=4)
    (back,) = vjp(ours, a)[1](ct)
    same(np.sum(np.real(ct * np.asarray(change))) / scale, np.sum(np.real(np.asarray(back) * t)) / scale, 2e-3)


@pytest.mark.parametrize("function", [linalg.inv, lambda a: linalg.solve(a, a[0])])
def test_a_gradient_solves_with_the_decomposition_of_its_function(function):
    a = matrices(4, 4)
    program = make_jaxpr(lambda a, ct: vjp(function, a)[1](ct))(a, function(a))
    names = [eqn.primitive.name for eqn in program.eqns]
    assert names.count("lu") == 1 and names.count("custom_linear_solve") == 2
    assert "triangular_solve" not in names  # of the derivative of a decomposition


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_determinants_of_half_precision(n, dtype):
    m = matrices(n, n).astype(dtype)
    tolerance = 8 * float(jnp.finfo(dtype).eps)
    for method in (None, "qr"):
        sign, log = linalg.slogdet(m, method=method)
        assert sign.dtype == log.dtype == dtype
        np.testing.assert_allclose(np.float64([sign, log]), np.linalg.slogdet(wide(m)), tolerance, tolerance)
    det = linalg.det(m)
    assert det.dtype == dtype
    np.testing.assert_allclose(np.float64(det), np.linalg.det(wide(m)), tolerance, tolerance)
    if n:
        slope = grad(lambda a: linalg.slogdet(a)[1])(m)
        assert slope.dtype == dtype
        expected = np.linalg.inv(wide(m)).T
        np.testing.assert_allclose(np.float64(slope), expected, atol=tolerance * np.abs(expected).max())
    large = np.diag(np.full(n, 300.0)).astype(dtype)  # the determinant is out of range, its logarithm is not
    np.testing.assert_allclose(np.float64(linalg.slogdet(large)[1]), n * np.log(300), tolerance)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_determinant_of_singular_matrices(n):
    a = draw(n, n)
    a[0] = a[1]
    a = np.round(a * 4) / 4
    cofactors = np.array(
        [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)]
    )
    same(grad(linalg.det)(a), cofactors, 2e-3 * (1 + np.abs(cofactors).max()))
    zero = np.zeros((n, n), np.float32)
    same(grad(linalg.det)(zero), np.zeros((n, n)))
    a[:, 0] = 0  # rank n - 2
    same(linalg.det(a), 0.0)


@pytest.mark.parametrize("n", [3, 4])
def test_second_derivatives_of_determinant(n):
    a, t = matrices(n, n), draw(n, n, seed=3)
    slope = lambda a: np.linalg.det(a) * np.linalg.inv(a).T
    _, change = jvp(grad(linalg.det), (a,), (t,))
    expected = directional(slope, a, t)
    same(np.asarray(change) / np.abs(expected).max(), expected / np.abs(expected).max(), 2e-3)


def test_derivative_of_pinv_with_equal_singular_values():
    a, t = np.vstack([np.eye(3), np.zeros((1, 3))]).astype(np.float32), draw(4, 3)
    _, change = jvp(linalg.pinv, (a,), (t,))
    same(change, directional(np.linalg.pinv, a, t))


def test_vmap():
    a, b = matrices(3, 4, 4), draw(3, 4, 2)
    for name in ("det", "inv", "pinv", "eigvalsh"):
        same(vmap(getattr(linalg, name))(a), np.asarray(getattr(linalg, name)(a)))
    same(vmap(linalg.solve)(a, b), np.linalg.solve(a, b))
    same(vmap(linalg.solve, in_axes=(None, 0))(a[0], b), np.linalg.solve(a[:1], b))
    same(vmap(grad(linalg.det))(a), np.stack([np.linalg.det(m) * np.linalg.inv(m).T for m in wide(a)]), 1e-2)


def test_polynomials():
    same(jnp.poly(draw(3, 3)), np.poly(draw(3, 3)))
    roots = np.sort_complex(np.asarray(jnp.roots(np.float32([0, 1, -3, 2.0, 0]))))
    same(roots, np.sort_complex(np.roots([0, 1, -3, 2.0, 0])))
    assert jnp.roots(np.float32([1, -3, 2]), strip_zeros=False).shape == (2,)
    x, y = np.arange(6, dtype=np.float32), draw(6)
    same(jnp.polyfit(x, y, 2), np.polyfit(x, y, 2))
    same(jnp.polyfit(x, y, 2, cov=True), np.polyfit(x, y, 2, cov=True))
    w = np.arange(1, 7.0)
    same(jnp.polyfit(x, y, 1, w=w, cov="unscaled"), np.polyfit(x, y, 1, w=w, cov="unscaled"))
    same(jnp.polyfit(x, draw(6, 2), 1, w=w), np.polyfit(x, draw(6, 2), 1, w=w))
    same(tuple(jnp.polyfit(x, y, 2, full=True)[:4]), tuple(np.polyfit(x, y, 2, full=True)[:4]))


STRICT = {
    **{
        name: getattr(linalg, name)
        for name in "cholesky cond det eig eigh eigvals eigvalsh inv matrix_norm matrix_rank norm pinv qr slogdet svd"
        " svdvals trace vector_norm".split()
    },
    "lstsq": lambda a: linalg.lstsq(a, a),
    "matrix_power": lambda a: linalg.matrix_power(a, -3),
    "multi_dot": lambda a: linalg.multi_dot([a, a, a]),
    "solve": lambda a: linalg.solve(a, a),
    "tensorsolve": lambda a: linalg.tensorsolve(a, a[0]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("name", STRICT)
def test_operands_of_one_dtype_need_no_promotion(name, dtype):
    a = matrices(3, 3, dtype=dtype)
    a = a @ a.conj().T  # positive definite, for Cholesky's decomposition
    expected = STRICT[name](a)
    with config.numpy_dtype_promotion("strict"):
        found = STRICT[name](a)
        jvp(STRICT[name], (a,), (a,)) if name not in ("matrix_rank", "eig") else None
    for f, e in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-5)
