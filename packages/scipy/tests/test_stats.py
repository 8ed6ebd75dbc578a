"""Distributions and statistics against SciPy in float64, and derivatives against finite differences."""

import importlib
import inspect

import numpy as np
import pytest
import scipy.stats as sp

from bedrax import random
from bedrax.autodiff import check_grads, grad
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.scipy import stats
from bedrax.testing import oracles


@pytest.fixture(autouse=True)
def float64():
    with config.enable_x64(True), np.errstate(all="ignore"):
        yield


VALUES = {"a": 2.5, "b": 1.7, "df": 3.5, "beta": 1.5, "kappa": 2.0, "c": 0.4, "p": 0.3, "n": 7.0, "mu": 3.2}
VECTORS = ("dirichlet", "multinomial", "multivariate_normal")
FUNCTIONS = [
    (name, f)
    for name in stats.__all__
    if name not in (*VECTORS, "gaussian_kde", "mode", "rankdata", "sem")
    for f in importlib.import_module(f"bedrax.scipy.stats.{name}").__all__
]


def arguments(name, f):
    """Points, parameters, location and scale."""
    parameters = list(inspect.signature(getattr(getattr(stats, name), f)).parameters)
    if f in ("ppf", "isf"):
        x = np.linspace(0.01, 0.99, 20)
    elif f == "entropy":
        return np.array([0.1, 1, 30, 99, 101, 400]), [], {}
    else:
        x = np.arange(-2.0, 12) if parameters[0] == "k" else np.linspace(-4, 9, 27)
    shapes = [VALUES[p] for p in parameters[1:] if p not in ("loc", "scale")]
    if name == "truncnorm":
        shapes = [-1.2, 2.5]
    where = {"loc": 1.0, "scale": 1.5}
    return x, shapes, {p: where[p] for p in parameters if p in where}


@pytest.mark.parametrize("name,f", FUNCTIONS)
def test_values(name, f):
    oracles.require(f"scipy.stats.{name}.{f}")
    x, shapes, where = arguments(name, f)
    # SciPy's entropy is itself an expansion for large means.
    expected = getattr(getattr(sp, name), f)(x, *shapes, **where)
    np.testing.assert_allclose(
        getattr(getattr(stats, name), f)(x, *shapes, **where),
        expected,
        rtol=1e-6 if f == "entropy" else 1e-11,
        atol=1e-300,
    )


@pytest.mark.parametrize("name,f", [(n, f) for n, f in FUNCTIONS if f in ("logpdf", "cdf", "logcdf", "logpmf")])
def test_derivatives(name, f):
    x, shapes, where = arguments(name, f)
    fun = getattr(getattr(stats, name), f)
    slopes = np.asarray(vmap(grad(lambda x: fun(x, *shapes, **where)))(x))
    assert not np.isnan(slopes).any()  # outside of the support, too
    if f == "logpdf":
        finite = np.isfinite(np.asarray(fun(x, *shapes, **where)))
        point = x[finite][finite.sum() // 3] + 0.05
        check_grads(
            lambda x, *shapes: fun(x, *shapes, **where),
            (np.float64(point), *map(np.float64, shapes)),
            order=1,
            rtol=1e-6,
        )


def test_keywords_and_errors():
    assert stats.norm.pdf(x=0.0, scale=2.0) == stats.norm.pdf(0.0, 0, 2)
    np.testing.assert_allclose(stats.t.logpdf(1.0, df=3), sp.t.logpdf(1.0, 3))
    with pytest.raises(TypeError, match="missing 1 required positional argument: .df."):
        stats.t.logpdf(1.0)
    with pytest.raises(TypeError, match="shape"):
        stats.norm.pdf(0.0, shape=1)
    with pytest.raises(TypeError, match="takes from 1 to 3 positional arguments"):
        stats.norm.pdf(0, 0, 1, 2)


def test_tails_keep_their_accuracy():
    for x in (-40.0, -10.0, 10.0, 37.0):
        np.testing.assert_allclose(stats.norm.logcdf(x), sp.norm.logcdf(x), rtol=1e-13)
    np.testing.assert_allclose(stats.cauchy.sf(1e20), 1 / (np.pi * 1e20), rtol=1e-13)
    np.testing.assert_allclose(stats.truncnorm.logpdf(9.0, 8, 12), sp.truncnorm.logpdf(9.0, 8, 12), rtol=1e-12)
    np.testing.assert_allclose(stats.gumbel_r.logsf(40.0), sp.gumbel_r.logsf(40.0), rtol=1e-12)
    np.testing.assert_allclose(stats.expon.logcdf(1e-20), np.log(1e-20), rtol=1e-13)


RNG = np.random.default_rng(0)


def test_distributions_of_vectors():
    alpha = np.array([0.5, 2, 3.0])
    x = RNG.dirichlet(alpha, 4).T
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), sp.dirichlet.logpdf(x, alpha))
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:2], alpha), sp.dirichlet.pdf(x[:2], alpha))
    assert stats.dirichlet.logpdf(np.array([0.2, 0.9, 0.1]), alpha) == -np.inf
    k, p = np.array([[1, 2, 3], [4, 1, 1], [1, 1, 1]]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stats.multinomial.logpmf(k, 6, p), sp.multinomial.logpmf(k, 6, p))
    with config.numpy_dtype_promotion("strict"):  # integers of counts, floats of probabilities
        counts = stats.multinomial.logpmf(np.array([1, 2, 3]), np.int32(6), np.float32([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(counts, sp.multinomial.logpmf([1, 2, 3], 6, [0.2, 0.3, 0.5]), rtol=1e-5)
    a = RNG.standard_normal((3, 3))
    cov, mean, y = a @ a.T + np.eye(3), np.ones(3), RNG.standard_normal((5, 3))
    np.testing.assert_allclose(
        stats.multivariate_normal.logpdf(y, mean, cov), sp.multivariate_normal.logpdf(y, mean, cov)
    )
    covs = np.stack([cov, 2 * cov])
    expected = [sp.multivariate_normal.pdf(y[0], mean, c) for c in covs]
    np.testing.assert_allclose(stats.multivariate_normal.pdf(y[0], mean, covs), expected)
    check_grads(stats.multivariate_normal.logpdf, (y[0], mean, cov), order=1, rtol=1e-6)
    with pytest.raises(ValueError, match="of x is as long as alpha, or one less"):
        stats.dirichlet.logpdf(np.ones(5), alpha)
    with pytest.raises(NotImplementedError, match="allow_singular"):
        stats.multivariate_normal.logpdf(y, mean, cov, allow_singular=True)


Z = RNG.integers(0, 5, (6, 7)).astype(float)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_summaries(axis):
    for method in ("average", "min", "max", "dense", "ordinal"):
        np.testing.assert_array_equal(
            stats.rankdata(Z, method, axis=axis).reshape(-1), sp.rankdata(Z, method, axis=axis).reshape(-1)
        )
    for keepdims in (False, True):
        for actual, expected in zip(
            stats.mode(Z, axis=axis, keepdims=keepdims), sp.mode(Z, axis=axis, keepdims=keepdims), strict=True
        ):
            np.testing.assert_array_equal(actual, expected)
    np.testing.assert_allclose(stats.sem(Z, axis=axis), sp.sem(Z, axis=axis))


def test_summaries_with_nan():
    z = Z.copy()
    z[0, 0] = np.nan
    np.testing.assert_allclose(stats.sem(z, nan_policy="omit"), sp.sem(z, nan_policy="omit"))
    np.testing.assert_array_equal(stats.rankdata(z, axis=1), sp.rankdata(z, axis=1))
    with pytest.raises(NotImplementedError, match="omit"):
        stats.mode(z, nan_policy="omit")
    with pytest.raises(ValueError, match="method is one of"):
        stats.rankdata(z, "middle")


@pytest.mark.parametrize("options", [{}, {"weights": RNG.random(20)}, {"bw_method": "silverman"}, {"bw_method": 0.3}])
def test_kernel_densities(options):
    data, points = RNG.standard_normal((2, 20)), RNG.standard_normal((2, 5))
    ours, theirs = stats.gaussian_kde(data, **options), sp.gaussian_kde(data, **options)
    np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
    np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-10)
    mean, cov = np.ones(2), np.eye(2)
    np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov))
    np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs))
    flat = stats.gaussian_kde(data[0]).integrate_box_1d(-1, 0.5)
    np.testing.assert_allclose(flat, sp.gaussian_kde(data[0]).integrate_box_1d(-1, 0.5))


def test_samples_of_a_kernel_density():
    kde = stats.gaussian_kde(np.array([0.0, 10.0]), bw_method=0.01)
    x = np.asarray(kde.resample(random.key(0), (1000,)))
    assert x.shape == (1, 1000)
    assert 0.4 < np.mean(x[0] < 5) < 0.6


def test_entropy_of_poisson_has_all_places():
    mu = np.array([0.1, 1, 5, 10, 24.9, 25.1, 50, 99.9, 100.1, 500], np.float32)
    wanted = sp.poisson.entropy(mu.astype(np.float64))
    np.testing.assert_allclose(np.asarray(stats.poisson.entropy(mu)), wanted, rtol=3e-6)
