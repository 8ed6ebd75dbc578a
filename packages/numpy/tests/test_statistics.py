"""Statistics against NumPy."""

import numpy as np
import pytest

import bedrax.numpy as jnp


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
def test_average(x):
    a = np.abs(draw(5, 6, seed=3))
    check("average", x)
    check("average", x, axis=1, weights=np.arange(6.0), returned=True)
    check("average", x, axis=0, returned=True)
    check("average", x, weights=a, keepdims=True)
    check("average", x, axis=(1, 0), weights=a.T)
    with pytest.raises(ValueError, match="axis must be specified"):
        jnp.average(x, weights=np.ones(6))


@pytest.mark.parametrize("x", [*X, draw(5, 6, dtype=np.complex64)])
def test_covariance(x):
    check("cov", x)
    check("cov", x, rowvar=False, ddof=0)
    check("cov", x, x)
    check("cov", x[0])
    check("cov", x, fweights=np.arange(6), aweights=np.arange(1, 7.0))
    check("cov", x, bias=True, aweights=np.arange(1, 7.0))
    check("corrcoef", x)
    check("corrcoef", x[0], x[1])


METHODS = ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"]


@pytest.mark.parametrize("method", METHODS)
def test_quantile(method):
    x = draw(5, 6)
    check("quantile", x, 0.3, axis=1, method=method)
    check("quantile", x, np.float32([0, 0.25, 1]), axis=0, method=method, keepdims=True)
    check("percentile", x, 30.0, axis=(0, 1), method=method)
    assert jnp.quantile(integers(4, 5, 6), 0.5, method=method).dtype == np.float32


@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")
@pytest.mark.parametrize("method", METHODS)
def test_nanquantile(method):
    x = draw(5, 6)
    x[0, 1] = x[2, 3] = np.nan
    x[:, 5] = np.nan
    check("nanquantile", x, 0.3, axis=1, method=method)
    check("nanquantile", x, np.float32([0.2, 0.9]), axis=0, method=method, keepdims=True)
    check("quantile", x, np.float32([0.2, 0.9]), axis=0, method=method)
    check("nanpercentile", x, 70.0, axis=1, method=method)


@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")
def test_median():
    x = draw(5, 6)
    for v in (x, integers(4, 5, 6), integers(4, 4, 3, 2)):
        check("median", v)
        check("median", v, axis=1, keepdims=True)
        check("median", v, axis=(0, 1))
    x[0, 1] = np.nan
    x[:, 5] = np.nan
    check("nanmedian", x, axis=0)
    check("nanmedian", x)
    check("median", x, axis=1)


def test_weighted_quantile():
    w = np.array([1.0, 0, 2, 3, 1, 1, 0.5])
    check("quantile", draw(7), np.array([0.1, 0.5, 0.9]), method="inverted_cdf", weights=w)
    check("quantile", draw(3, 7), 0.4, axis=1, method="inverted_cdf", weights=w)
    with pytest.raises(NotImplementedError, match="method='inverted_cdf' only"):
        jnp.quantile(draw(7), 0.3, weights=w)
    with pytest.raises(ValueError, match="method is one of"):
        jnp.quantile(draw(7), 0.3, method="hazen")


def test_bincount():
    x = integers(5, 20)
    check("bincount", x)
    check("bincount", x, weights=draw(20), minlength=9)
    check("bincount", np.array([], np.int32))
    assert jnp.bincount(np.array([1, 1, 3, -1]), length=3).tolist() == [1, 2, 0]
    with pytest.raises(TypeError, match="counts integers"):
        jnp.bincount(draw(3))


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    edges = np.sort(draw(9))
    edges[3] = edges[4]
    v = np.concatenate([draw(9, seed=4), edges])
    check("digitize", v, edges, right)
    check("digitize", v, edges[::-1].copy(), right)


@pytest.mark.parametrize("x", X)
def test_histogram(x):
    check("histogram", x)
    check("histogram", x, bins=4, range=(0, 2))
    check("histogram", x, bins=np.array([-1.0, 0, 0.5, 3]), density=True)
    check("histogram", x, weights=np.abs(draw(5, 6)))
    check("histogram_bin_edges", x, bins=3)
    check("histogram_bin_edges", np.ones(3, np.int32), bins=2)
    with pytest.raises(NotImplementedError, match="rules that choose bins"):
        jnp.histogram(x, bins="auto")


def test_histograms_of_points():
    x = draw(5, 6)
    check("histogram2d", x[0], x[1], bins=3)
    check("histogram2d", x[0], x[1], bins=np.array([-1.0, 0, 1]))
    check("histogram2d", x[0], x[1], bins=[np.array([-1.0, 0, 1]), 3])
    check("histogramdd", x, bins=2, density=True)
    check("histogramdd", x[:, :3], bins=(2, 3, 4), weights=np.arange(5.0))
