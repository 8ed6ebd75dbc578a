"""Differences, integrals, interpolation, convolution, windows, polynomials and bits against NumPy."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax.autodiff import grad


def draw(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng([seed, *shape]).standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * np.random.default_rng([seed + 1, *shape]).standard_normal(shape)
    return x.astype(dtype)


def integers(n, *shape, seed=0):
    return np.random.default_rng([seed, n, *shape]).integers(0, n, shape).astype(np.int32)


def same(found, expected, tolerance=1e-4):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e, tolerance)
        return
    found = np.asarray(found)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def check(name, *args, numpy=None, **kwargs):
    """Compare a function with NumPy's of the same name, or with another one."""
    same(getattr(jnp, name)(*args, **kwargs), (numpy or getattr(np, name))(*args, **kwargs))


X = [draw(5, 6), integers(4, 5, 6)]


@pytest.mark.parametrize("x", X)
def test_differences(x):
    check("diff", x)
    check("diff", x, n=2, axis=0)
    check("diff", x, n=9)
    check("diff", x, prepend=1, append=draw(5, 2).astype(x.dtype))
    check("diff", x > 0)
    check("ediff1d", x, to_begin=np.array([1, 2], x.dtype))
    check("unwrap", x * 4, axis=0)
    check("unwrap", integers(40, 9), period=6)
    check("unwrap", draw(9) * 9, discont=4.0)
    with pytest.raises(ValueError, match="non-negative"):
        jnp.diff(x, n=-1)


@pytest.mark.parametrize("x", X)
def test_gradient_and_trapezoid(x):
    f = x.astype(np.float32)
    check("gradient", f)
    check("gradient", f, 2.0, axis=1)
    check("gradient", f, np.arange(5.0) ** 2, np.arange(6.0))
    check("gradient", f, 1.0, 3.0, axis=(1, 0))
    check("trapezoid", x)
    check("trapezoid", x, x=np.arange(6.0) ** 2)
    check("trapezoid", x, dx=2.0, axis=0)


def test_interp():
    xp, fp, x = np.sort(draw(9)), draw(9, seed=1), draw(20)
    xp[3] = xp[4]
    check("interp", x, xp, fp)
    check("interp", x, xp, fp, left=-5, right=7.0)
    check("interp", x, np.arange(9.0)[::-1].copy(), fp, period=4.5)
    line = jnp.interp(np.float32([-1, 5]), np.float32([0, 1, 2]), np.float32([0, 10, 20]), "extrapolate", "extrapolate")
    assert line.tolist() == [-10, 50]
    slope = grad(lambda v: jnp.interp(v, np.float32([0, 1, 3]), np.float32([0, 2, 8])))(2.0)
    assert float(slope) == 3.0
    with pytest.raises(ValueError, match="equal size"):
        jnp.interp(x, xp, fp[1:])


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(7, 3), (3, 7), (6, 4), (4, 6), (5, 5), (1, 4), (7, 2), (2, 7)])
def test_convolution(mode, sizes):
    n, m = sizes
    for dtype in (np.float32, np.complex64):
        a, v = draw(n, dtype=dtype), draw(m, dtype=dtype, seed=5)
        check("convolve", a, v, mode)
        check("correlate", a, v, mode)


def test_convolution_errors():
    with pytest.raises(ValueError, match="unsupported mode"):
        jnp.convolve(draw(3), draw(3), "half")
    with pytest.raises(ValueError, match="1-dimensional"):
        jnp.correlate(draw(3, 3), draw(3))
    with pytest.raises(ValueError, match="empty"):
        jnp.convolve(draw(0), draw(3))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 8])
def test_windows(name, size):
    check(name, size)


def test_kaiser_and_i0():
    check("kaiser", 7, 4.0)
    check("kaiser", 1, 4.0)
    check("i0", draw(9) * 4)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_bits(axis, bitorder):
    check("packbits", integers(2, 5, 11), axis=axis, bitorder=bitorder)
    check("unpackbits", integers(256, 3, 2).astype(np.uint8), axis=axis, bitorder=bitorder)


def test_bits_counted():
    check("unpackbits", np.array([5, 6], np.uint8), count=-3)
    check("unpackbits", np.array([5, 6], np.uint8), count=20)
    check("packbits", np.ones((2, 3), bool))
    with pytest.raises(TypeError, match="unsigned byte"):
        jnp.unpackbits(np.array([1, 2]))
    with pytest.raises(TypeError, match="integer or boolean"):
        jnp.packbits(draw(3))


def test_polynomials():
    check("polyadd", draw(3), draw(5))
    check("polysub", draw(3), draw(5))
    check("polymul", draw(3), draw(5))
    check("polyder", draw(5), 2)
    check("polyder", draw(2), 3)
    check("polyint", draw(4), 2, np.array([1.0, 2]))
    check("polyint", draw(4))
    check("polyval", draw(4), draw(2, 3))
    check("polyval", draw(30), draw(3) * 0.5)
    check("poly", draw(4))


def test_polydiv():
    u, v = np.float32([1, 3, -2, 5, 4]), np.float32([2, 1, 1])
    quotient, rest = jnp.polydiv(u, v)
    same(quotient, np.polydiv(u, v)[0])
    same(jnp.polyadd(jnp.polymul(quotient, v), rest), u)
    quotient, rest = jnp.polydiv(np.float32([1, 2, 1]), np.float32([1, 1]), trim_leading_zeros=True)
    assert quotient.tolist() == [1, 1] and rest.shape == (0,)


def test_sums_of_polynomials_in_columns():
    a, b = np.array([[2, 3, 1]]), np.array([[5, 7, 3], [8, 2, 6]])
    np.testing.assert_array_equal(jnp.polyadd(a, b), [[5, 7, 3], [10, 5, 7]])
    np.testing.assert_array_equal(jnp.polysub(b, a[0, :2][:, None] * np.ones(3, int)), [[3, 5, 1], [5, -1, 3]])
    np.testing.assert_array_equal(jnp.polyadd(np.ones(2), np.ones((3, 2))), [[1, 1], [2, 2], [2, 2]])


def test_each_function_of_piecewise_may_have_one_condition_for_all():
    x = np.arange(-4, 5)
    functions = [lambda v: v * 0, lambda v: v * 10, lambda v: v * 100]
    np.testing.assert_array_equal(jnp.piecewise(x, jnp.array([False, True, False]), functions), x * 10)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("name", ["r_", "c_"])
@pytest.mark.parametrize("how", ["r", "c"])
def test_joined_as_a_matrix(name, how):
    parts = np.array([1, 2, 3]), np.array([4, 5, 6])
    expected = np.asarray(getattr(np, name)[(how, *parts)])
    np.testing.assert_array_equal(getattr(jnp, name)[(how, *parts)], expected)
