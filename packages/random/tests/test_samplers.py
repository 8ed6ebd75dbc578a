"""Samplers: the streams users know, the distributions, derivatives, dtypes and edges."""

import math
import typing
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from bedrax import lax, random
from bedrax.autodiff import check_grads, grad
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.random import counts, gamma_family

P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)

# What the reference system draws with key(42): a program moved here must see the same numbers.
STREAMS = [
    ("uniform", ((3,),), [0.4887096, 0.6797972, 0.6162715]),
    ("normal", ((3,),), [-0.02830462, 0.4671319, 0.295703]),
    ("exponential", ((3,),), [0.6708175, 1.138801, 0.95782]),
    ("gumbel", ((3,),), [0.3340934, 0.9520195, 0.7255306]),
    ("laplace", ((3,),), [0.02283965, -0.4456536, -0.2646729]),
    ("logistic", ((3,),), [-0.04516941, 0.7528398, 0.4737523]),
    ("cauchy", ((3,),), [-0.03548463, 0.6337261, 0.3824406]),
    ("maxwell", ((3,),), [0.5535825, 0.2932851, 1.708603]),
    ("rademacher", ((6,),), [1, -1, -1, -1, 1, -1]),
    ("randint", ((6,), -5, 20), [14, 9, 16, 14, 4, 14]),
    ("permutation", (8,), [7, 4, 2, 5, 3, 6, 0, 1]),
    ("categorical", (np.log(P), -1, (8,)), [3, 3, 3, 3, 3, 3, 1, 1]),
    ("choice", (9, (4,), False), [7, 4, 2, 5]),
    ("choice", (4, (3,), False, P), [3, 2, 1]),
    ("truncated_normal", (-1.0, 2.0, (3,)), [0.1477001, 0.5684449, 0.4210255]),
    ("lognormal", (0.5, (3,)), [0.9859474, 1.263096, 1.159341]),
    ("pareto", (2.0, (3,)), [1.398512, 1.767207, 1.614314]),
    ("rayleigh", (2.0, (3,)), [2.393302, 1.757181, 1.967877]),
    ("wald", (1.5, (3,)), [1.64612, 2.698347, 0.351881]),
    ("weibull_min", (1.5, 2.0, (3,)), [1.228552, 1.600719, 1.468024]),
    ("triangular", (0.0, 0.3, 2.0, (3,)), [0.6815208, 0.9565971, 0.8577754]),
    ("double_sided_maxwell", (0.5, 2.0, (3,)), [-2.262043, -0.851378, 4.944043]),
    ("gamma", (2.5, (3,)), [4.378075, 1.500786, 4.194111]),
    ("gamma", (0.3, (3,)), [0.4362474, 0.3200987, 1.03847]),
    ("loggamma", (0.3, (3,)), [-0.8295456, -1.139126, 0.0377484]),
    ("beta", (2.0, 0.5, (3,)), [0.9489363, 0.9996411, 0.9180625]),
    ("dirichlet", (P,), [0.008272717, 0.165767, 0.8128828, 0.01307735]),
    ("chisquare", (3.0, (3,)), [5.870714, 1.397851, 5.559423]),
    ("f", (3.0, 4.0, (3,)), [0.7448719, 0.4786114, 0.2329463]),
    ("t", (3.0, (3,)), [0.08987478, -1.735747, 2.352019]),
    ("generalized_normal", (1.5, (3,)), [-0.8782375, -0.2061625, 1.160471]),
    ("ball", (3,), [0.3234023, 0.06133875, 0.01824339]),
    ("poisson", (3.0, (6,)), [6, 2, 2, 1, 5, 2]),
    ("poisson", (300.0, (3,)), [312, 316, 282]),
    ("geometric", (0.3, (6,)), [3, 2, 2, 2, 3, 2]),
    ("binomial", (10.0, 0.3, (6,)), [2, 5, 2, 2, 4, 3]),
    ("binomial", (1000.0, 0.7, (3,)), [690, 687, 715]),
    ("binomial", (10.0, 0.5, (3,)), [6, 4, 7]),
    ("binomial", (100.0, 0.5, (3,)), [46, 45, 55]),
    ("multinomial", (100.0, P), [13, 15, 27, 45]),
]


@pytest.mark.parametrize("name, args, expected", STREAMS, ids=[f"{s[0]}{i}" for i, s in enumerate(STREAMS)])
def test_streams(name, args, expected):
    out = np.asarray(getattr(random, name)(random.key(42), *args))
    np.testing.assert_allclose(out, np.asarray(expected), rtol=2e-5, atol=2e-6)


# ---- distributions: the largest gap between empirical and true distribution function (Kolmogorov and Smirnov) ----

N = 4000
GAP = 1.95 / math.sqrt(N)  # exceeded with probability 0.001; the keys are fixed


def _phi(x):
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _gamma3(x):  # the distribution function for a = 3
    return 1 - np.exp(-x) * (1 + x + x * x / 2)


_Z = _phi(2.0) - _phi(-1.0)
APPROXIMATE = dict(method="approximate")
DISTRIBUTIONS = [
    ("uniform", (), dict(minval=-2.0, maxval=3.0), lambda x: (x + 2) / 5),
    ("normal", (), {}, _phi),
    ("exponential", (), {}, lambda x: 1 - np.exp(-x)),
    ("gumbel", (), {}, lambda x: np.exp(-np.exp(-x))),
    ("gumbel", (), dict(mode="high"), lambda x: np.exp(-np.exp(-x))),
    ("laplace", (), {}, lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-np.abs(x)) / 2)),
    ("logistic", (), {}, lambda x: 1 / (1 + np.exp(-x))),
    ("cauchy", (), {}, lambda x: 0.5 + np.arctan(x) / np.pi),
    ("maxwell", (), {}, lambda x: 2 * _phi(x) - 1 - math.sqrt(2 / np.pi) * x * np.exp(-x * x / 2)),
    ("truncated_normal", (-1.0, 2.0), {}, lambda x: (_phi(x) - _phi(-1.0)) / _Z),
    ("lognormal", (0.5,), {}, lambda x: _phi(np.log(x) / 0.5)),
    ("pareto", (2.5,), {}, lambda x: 1 - x**-2.5),
    ("rayleigh", (2.0,), {}, lambda x: 1 - np.exp(-((x / 2) ** 2) / 2)),
    ("weibull_min", (1.5, 2.0), {}, lambda x: 1 - np.exp(-((x / 1.5) ** 2))),
    ("triangular", (0.0, 0.5, 2.0), {}, lambda x: np.where(x < 0.5, x * x, 1 - (2 - x) ** 2 / 3)),
    (
        "wald",
        (1.5,),
        {},
        lambda x: _phi((x / 1.5 - 1) / np.sqrt(x)) + math.exp(2 / 1.5) * _phi(-(x / 1.5 + 1) / np.sqrt(x)),
    ),
    ("gamma", (3.0,), {}, _gamma3),
    ("gamma", (1.0,), {}, lambda x: 1 - np.exp(-x)),
    ("gamma", (0.5,), {}, lambda x: 2 * _phi(np.sqrt(2 * x)) - 1),
    ("loggamma", (0.5,), {}, lambda x: 2 * _phi(np.sqrt(2 * np.exp(x))) - 1),
    ("chisquare", (6.0,), {}, lambda x: _gamma3(x / 2)),
    ("beta", (2.0, 1.0), {}, lambda x: x**2),
    ("beta", (0.5, 0.5), {}, lambda x: 2 / np.pi * np.arcsin(np.sqrt(x))),
    ("t", (2.0,), {}, lambda x: 0.5 + x / (2 * np.sqrt(2 + x * x))),
    ("f", (2.0, 4.0), {}, lambda x: 1 - (1 + x / 2) ** -2.0),
    ("gamma", (3.0,), APPROXIMATE, _gamma3),
    ("gamma", (1.0,), APPROXIMATE, lambda x: 1 - np.exp(-x)),
    ("gamma", (0.5,), APPROXIMATE, lambda x: 2 * _phi(np.sqrt(2 * x)) - 1),
    ("loggamma", (0.5,), APPROXIMATE, lambda x: 2 * _phi(np.sqrt(2 * np.exp(x))) - 1),
    ("loggamma", (1e-3,), APPROXIMATE, lambda x: np.exp(1e-3 * np.minimum(x, 0)) - 6e-4 * (x > -1)),
    ("chisquare", (6.0,), APPROXIMATE, lambda x: _gamma3(x / 2)),
    ("beta", (2.0, 1.0), APPROXIMATE, lambda x: x**2),
    ("beta", (0.5, 0.5), APPROXIMATE, lambda x: 2 / np.pi * np.arcsin(np.sqrt(x))),
    ("generalized_normal", (1.0,), {}, lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-np.abs(x)) / 2)),
]


@pytest.mark.parametrize(
    "name, args, options, cdf", DISTRIBUTIONS, ids=[f"{d[0]}{i}" for i, d in enumerate(DISTRIBUTIONS)]
)
def test_distribution(name, args, options, cdf):
    x = np.sort(np.asarray(getattr(random, name)(random.key(11), *args, shape=(N,), **options), np.float64))
    f = cdf(x)
    gap = max(np.abs(f - np.arange(N) / N).max(), np.abs(f - np.arange(1, N + 1) / N).max())
    assert gap < GAP, (name, gap)


def _poisson(k, rate):
    return math.exp(k * math.log(rate) - rate - math.lgamma(k + 1))


def _binomial(k, n, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def _approximate_poisson(rate):
    return partial(random.poisson, lam=np.float32(rate), method="approximate")


COUNTS = [
    ("poisson", (2.5,), lambda k: _poisson(k, 2.5), range(0, 9)),
    ("poisson", (20.0,), lambda k: _poisson(k, 20.0), range(8, 33)),
    (_approximate_poisson(0.1), (), lambda k: _poisson(k, 0.1), range(0, 3)),
    (_approximate_poisson(2.5), (), lambda k: _poisson(k, 2.5), range(0, 9)),
    (_approximate_poisson(14.9), (), lambda k: _poisson(k, 14.9), range(4, 27)),
    (_approximate_poisson(15.5), (), lambda k: _poisson(k, 15.5), range(5, 28)),
    (_approximate_poisson(400.5), (), lambda k: _poisson(k, 400.5), range(340, 461)),
    ("geometric", (0.3,), lambda k: 0.3 * 0.7 ** (k - 1), range(1, 11)),
    ("binomial", (12.0, 0.25), lambda k: _binomial(k, 12, 0.25), range(0, 8)),
    ("binomial", (60.0, 0.7), lambda k: _binomial(k, 60, 0.7), range(32, 52)),
]


@pytest.mark.parametrize(
    "name, args, mass, values",
    COUNTS,
    ids=[f"{c[0] if isinstance(c[0], str) else 'approximate'}{i}" for i, c in enumerate(COUNTS)],
)
def test_samplers_of_counts_have_their_distributions(name, args, mass, values):
    draw = getattr(random, name) if isinstance(name, str) else name
    x = np.asarray(draw(random.key(5), *args, shape=(N,)))
    expected = np.array([N * mass(k) for k in values])
    found = np.array([(x == k).sum() for k in values])
    rest = N - expected.sum()
    chi2 = ((found - expected) ** 2 / expected).sum() + (N - found.sum() - rest) ** 2 / rest
    assert chi2 < len(expected) + 5 * math.sqrt(2 * len(expected))  # mean and five deviations


def test_vectors():
    key = random.key(3)
    x = np.asarray(random.dirichlet(key, P * 10, (N,)))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(x.mean(0), P, atol=0.02)
    b = np.asarray(random.ball(key, 3, shape=(N,)))
    radius = np.sort(np.linalg.norm(b, axis=-1))
    assert radius.max() <= 1 and np.abs(radius**3 - np.arange(N) / N).max() < GAP
    m = np.asarray(random.multinomial(key, 50.0, P, shape=(200,)))
    assert m.shape == (200, 4) and (m.sum(-1) == 50).all()
    np.testing.assert_allclose(m.mean(0), 50 * P, atol=1)
    draws = np.asarray(random.categorical(key, np.log(P), shape=(N,)))
    np.testing.assert_allclose(np.bincount(draws) / N, P, atol=0.03)
    draws = np.asarray(random.choice(key, 4, (N,), p=P))
    np.testing.assert_allclose(np.bincount(draws) / N, P, atol=0.03)


def test_normal_vectors_of_a_covariance():
    cov = np.array([[2, 0.5], [0.5, 1]], np.float32)
    for method in ("cholesky", "eigh", "svd"):
        x = np.asarray(
            random.multivariate_normal(random.key(1), np.array([1, -1], np.float32), cov, (N,), method=method)
        )
        np.testing.assert_allclose(x.mean(0), [1, -1], atol=0.1)
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.15)
    assert random.multivariate_normal(random.key(1), np.zeros((4, 2), np.float32), cov).shape == (4, 2)


@pytest.mark.parametrize("shape, n, m", [((), 3, None), ((2,), 3, 5), ((), 4, 2)])
def test_orthogonal(shape, n, m):
    q = np.asarray(random.orthogonal(random.key(0), n, shape, m=m))
    m = n if m is None else m
    assert q.shape == (*shape, n, m)
    t = np.swapaxes(q, -1, -2)
    square = q @ t if n <= m else t @ q
    np.testing.assert_allclose(square, np.broadcast_to(np.eye(min(n, m)), square.shape), atol=1e-5)


# ---- integers, members ----


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32])
def test_randint_covers_its_range(dtype):
    key = random.key(2)
    x = np.asarray(random.randint(key, (N,), 3, 9, dtype))
    assert x.dtype == dtype and set(x.tolist()) == set(range(3, 9))
    np.testing.assert_allclose(np.bincount(x - 3) / N, 1 / 6, atol=0.03)
    limits = np.iinfo(dtype)
    assert (np.asarray(random.randint(key, (5,), 7, 7, dtype)) == 7).all()
    if limits.bits == 8:  # bounds outside the range stop at its ends, the upper one included
        x = np.asarray(random.randint(key, (20 * N,), -1000, 1000, dtype))
        assert (x.min(), x.max()) == (limits.min, limits.max)
    with config.enable_x64(True):
        assert random.randint(key, (3,), 0, 2**40, np.int64).dtype == np.int64


def test_a_draw_of_nothing_from_nothing_is_empty():
    key = random.key(0)
    for n in (0, -3, np.int32(-3)):
        assert random.permutation(key, n).shape == (0,)
        assert random.choice(key, n, (0, 2), replace=False).shape == (0, 2)
    for mode in (None, "high"):
        for replace in (True, False):
            options = {"replace": replace, "mode": mode, "p": np.zeros(0)}
            found = random.choice(key, 0, (0, 2), **options)
            assert found.shape == (0, 2) and found.dtype == np.int32
            rows = random.choice(key, np.zeros((3, 0), np.float32), (0,), axis=1, **options)
            assert rows.shape == (3, 0) and rows.dtype == np.float32


def test_errors_of_draws_name_the_sampler():
    key = random.key(0)
    for logits, axis in ((np.zeros(0, np.float32), -1), (np.zeros((0, 2), np.float32), 0)):
        with pytest.raises(ValueError, match=r"^categorical: logits have no category along axis 0, got shape \(0,"):
            random.categorical(key, logits, axis=axis)
    with pytest.raises(ValueError, match="^choice: there is nothing to draw from"):
        random.choice(key, -3, (1,))
    with pytest.raises(TypeError, match="random.permutation: an array or a number is needed"):
        random.permutation(key, None)


def test_permutations():
    key = random.key(4)
    x = np.arange(12).reshape(4, 3)
    assert sorted(np.asarray(random.permutation(key, 100)).tolist()) == list(range(100))
    rows = np.asarray(random.permutation(key, x))
    assert sorted(map(tuple, rows)) == sorted(map(tuple, x)) and (rows != x).any()
    mixed = np.asarray(random.permutation(key, x, axis=1, independent=True))
    assert (np.sort(mixed, axis=1) == x).all()
    counts = np.zeros((4, 4))
    for order in np.asarray(vmap(lambda k: random.permutation(k, 4))(random.split(key, 1000))):
        counts[range(4), order] += 1
    np.testing.assert_allclose(counts / 1000, 0.25, atol=0.05)


def test_choice_of_slices():
    x = np.arange(24).reshape(2, 4, 3)
    key = random.key(4)
    for options in ({}, dict(replace=False), dict(p=P), dict(p=P, replace=False)):
        out = np.asarray(random.choice(key, x, (2, 2), axis=1, **options))
        assert out.shape == (2, 2, 2, 3)
        picked = out[0, ..., 0].ravel() // 3
        assert (out.reshape(2, 4, 3) == x[:, picked]).all()
        if "replace" in options:
            assert sorted(picked.tolist()) == [0, 1, 2, 3]


def test_categorical_shapes():
    logits = np.zeros((3, 5), np.float32)
    key = random.key(0)
    assert random.categorical(key, logits).shape == (3,)
    assert random.categorical(key, logits, axis=0).shape == (5,)
    assert random.categorical(key, logits, shape=(7, 3)).shape == (7, 3)
    apart = np.asarray(random.categorical(key, logits, shape=(5, 3), replace=False))
    assert (np.sort(apart, axis=0) == np.arange(5)[:, None]).all()
    impossible = np.array([-np.inf, 0, -np.inf], np.float32)
    assert (np.asarray(random.categorical(key, impossible, shape=(50,))) == 1).all()


def test_bernoulli_of_small_probabilities():
    key = random.key(0)
    p = np.float16(2.0**-12)  # below the resolution of float16 numbers in [0, 1): "low" cannot see it
    low, high = (np.asarray(random.bernoulli(key, p, (200_000,), mode=m)).mean() for m in ("low", "high"))
    assert abs(high - 2.0**-12) < 1.5e-4 and low > 6e-4


# ---- dtypes ----


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(
    "name, args",
    [("uniform", ()), ("normal", ()), ("gumbel", ()), ("exponential", ()), ("gamma", (2.0,)), ("beta", (1.0, 2.0))],
)
def test_float_dtypes(name, args, dtype):
    with config.enable_x64(True):
        x = np.asarray(getattr(random, name)(random.key(1), *args, shape=(200,), dtype=dtype))
    assert x.dtype == dtype and np.isfinite(x.astype(np.float64)).all() and len(np.unique(x)) > 50


def test_complex_normals():
    z = np.asarray(random.normal(random.key(1), (N,), np.complex64))
    assert z.dtype == np.complex64
    np.testing.assert_allclose([z.real.var(), z.imag.var()], 0.5, atol=0.05)


def test_uniform_numbers_are_in_the_interval():
    for dtype in (np.float16, np.float32):
        x = np.asarray(random.uniform(random.key(0), (N,), dtype))
        assert x.min() >= 0 and x.max() < 1


# ---- transformations ----


def test_vmap_over_keys_is_a_loop():
    keys = random.split(random.key(9), 3)
    for f in (
        random.normal,
        lambda k: random.gamma(k, 0.7),
        lambda k: random.poisson(k, 4.0),
        lambda k: random.permutation(k, 5),
        lambda k: random.binomial(k, 40.0, 0.4),
        lambda k: random.categorical(k, np.log(P)),
    ):
        loop = np.stack([np.asarray(f(k)) for k in keys])
        np.testing.assert_allclose(np.asarray(vmap(f)(keys)), loop, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(jit(vmap(f))(keys)), loop, rtol=1e-6)


def test_vmap_over_parameters_shares_the_key():
    rates = np.array([0.5, 2.0, 9.0], np.float32)
    out = np.asarray(vmap(lambda a: random.gamma(random.key(0), a))(rates))
    np.testing.assert_allclose(out, [float(random.gamma(random.key(0), a)) for a in rates], rtol=1e-6)


def test_derivatives_of_the_numbers():
    key = random.key(42)
    assert float(grad(lambda m: m + 2 * random.normal(key))(1.0)) == 1
    u = float(random.uniform(key))
    np.testing.assert_allclose(float(grad(lambda a: random.uniform(key, minval=a, maxval=3.0))(1.0)), 1 - u, rtol=1e-6)
    # gamma: at a fixed value of the distribution function; the reference system's values
    for a, expected, expected_log in (
        (2.0, 1.449859380722046, 0.39478638768196106),
        (0.3, 1.8602113723754883, 4.264120101928711),
    ):
        np.testing.assert_allclose(float(grad(lambda a: random.gamma(key, a))(a)), expected, rtol=2e-4)
        np.testing.assert_allclose(float(grad(lambda a: random.loggamma(key, a))(a)), expected_log, rtol=2e-4)


def test_derivatives_of_tiny_gamma_numbers():
    # d(log x)/da = (digamma(a + 1) - log x) / a where x is so small that the distribution function is a power
    keys = random.split(random.key(0), 20)
    a = 0.01
    logs = np.asarray(vmap(lambda k: random.loggamma(k, a))(keys))
    slopes = np.asarray(vmap(grad(lambda a, k: random.loggamma(k, a)), in_axes=(None, 0))(a, keys))
    digamma = -0.5609  # at 1.01, to four digits
    small = logs < -20
    assert small.sum() > 10 and np.isfinite(slopes).all()
    np.testing.assert_allclose(slopes[small], (digamma - logs[small]) / a, rtol=1e-4)


def test_gradient_of_an_expectation():
    # d/da E[gamma(a)] = 1
    keys = random.split(random.key(8), 2000)
    slopes = np.asarray(vmap(grad(lambda a, k: random.gamma(k, a)), in_axes=(None, 0))(1.7, keys))
    assert abs(slopes.mean() - 1) < 0.05


# ---- edges ----


def test_edges_of_parameters():
    key = random.key(0)
    rates = np.array([0, -1, np.nan], np.float32)
    assert np.asarray(random.poisson(key, rates)).tolist() == [0, -1, -1]
    n = np.array([5, 5, 0, -1, 5, 5], np.float32)
    p = np.array([0, 1, 0.5, 0.5, 1.5, np.nan], np.float32)
    np.testing.assert_array_equal(np.asarray(random.binomial(key, n, p)), [0, 5, 0, np.nan, np.nan, np.nan])
    assert float(random.gamma(key, 0.0)) == 0 and float(random.loggamma(key, 0.0)) == -np.inf
    assert int(random.geometric(key, 1.0)) == 1
    assert random.normal(key, (0, 3)).shape == (0, 3) and random.permutation(key, 0).shape == (0,)


def test_shapes_broadcast():
    key = random.key(0)
    a = np.ones((3, 1), np.float32)
    assert random.gamma(key, a).shape == (3, 1)
    assert random.beta(key, a, np.ones(2, np.float32)).shape == (3, 2)
    assert random.truncated_normal(key, a, 2.0, (4, 3, 2)).shape == (4, 3, 2)
    assert random.randint(key, (3, 2), a.astype(np.int32), 5).shape == (3, 2)
    assert lax.full((), 0.0).shape == random.laplace(key).shape


@pytest.mark.parametrize(
    "args, keywords, message",
    [
        ((1.0,), {}, "missing 1 required positional argument: 'b'"),
        ((1.0, 2.0), {"a": 3.0}, "multiple values for argument 'a'"),
        ((1.0, 2.0), {"c": 3.0}, "unexpected keyword argument 'c'"),
        ((1.0, 2.0, (), None, None), {}, "takes from 3 to 5 positional arguments but 6"),
    ],
)
def test_the_error_of_a_sampler_names_the_wrong_arguments(args, keywords, message):
    with pytest.raises(TypeError, match=rf"beta\(\).*{message}"):
        random.beta(random.key(0), *args, **keywords)


def test_arguments_of_a_sampler_by_name_and_by_place_are_the_same():
    key = random.key(0)
    by_place = random.beta(key, 1.0, 2.0, (3,), np.float32)
    by_name = random.beta(key=key, b=2.0, a=1.0, dtype=np.float32, shape=(3,))
    np.testing.assert_array_equal(by_place, by_name)
    assert "a, b: positive" in random.beta.__doc__ and "out_sharding:" in random.beta.__doc__


def _without_sampling_error():
    """Normal numbers at the middles of many intervals of equal probability."""
    from scipy.special import ndtri

    return ndtri((np.arange(400_000) + 0.5) / 400_000)


@pytest.mark.parametrize("a", [1e-6, 0.5, 3.0, 40.0])
def test_the_error_of_approximate_gamma_numbers(a, monkeypatch):
    """The expansion alone, at the quantiles of a normal number, against SciPy's distribution function."""
    special = pytest.importorskip("scipy.special")
    z = _without_sampling_error()
    monkeypatch.setattr(gamma_family, "normals", lambda key, shape, dtype: np.asarray(z, dtype))
    monkeypatch.setattr(gamma_family, "unit_floats", lambda key, shape, dtype: np.zeros(shape, dtype))
    with config.enable_x64(True):
        x = np.exp(
            np.asarray(gamma_family._approximate(random.key(0), z.shape, np.dtype(np.float64), np.full(z.shape, a)))
        )
    gap = special.gammainc(a + 6, x) - (np.arange(z.size) + 0.5) / z.size
    assert np.abs(np.diff(gap)).sum() / 2 < 1e-4


@pytest.mark.parametrize("rate", [0.01, 1.0, 9.0, 14.99, 15.0, 15.7, 40.0, 1e4])
def test_the_distance_of_approximate_poisson_numbers_in_total_variation(rate, monkeypatch):
    special = pytest.importorskip("scipy.special")
    z = _without_sampling_error()
    u = (np.arange(z.size) + 0.5) / z.size
    monkeypatch.setattr(counts, "normals", lambda key, shape, dtype: np.asarray(z, dtype))
    monkeypatch.setattr(counts, "unit_floats", lambda key, shape, dtype: np.asarray(u, dtype))
    with config.enable_x64(True):
        x = np.asarray(
            counts.poisson.formula(
                random.key(0), z.shape, np.dtype(np.int64), np.full(z.shape, rate), method="approximate"
            )
        )
    k = np.arange(x.min(), x.max() + 1)
    mass = np.exp(k * np.log(rate) - rate - special.gammaln(k + 1.0))
    found = np.bincount(x - x.min(), minlength=k.size) / z.size
    assert (np.abs(found - mass).sum() + 1 - mass.sum()) / 2 < 1e-4 + k.size / z.size / 2


def test_edges_of_approximate_samplers():
    key = random.key(0)
    rates = np.float32([-1, 0, np.inf, np.nan, 1e9, 3e9])
    got = np.asarray(random.poisson(key, rates, method="approximate"))
    assert got[:4].tolist() == [-1, 0, 2**31 - 1, -1] and abs(got[4] - 1e9) < 2e5 and got[5] == 2**31 - 1
    large = np.asarray(random.poisson(key, np.float32(2**28), (2000,), method="approximate"))
    assert np.unique(large % 16).size == 16  # integers between the floats, too
    assert np.asarray(random.poisson(key, np.float32(300), dtype="int8", method="approximate")) == 127
    a = np.float32([0, -1, np.inf, np.nan, 1e-9])
    np.testing.assert_array_equal(random.gamma(key, a, method="approximate"), [0, np.nan, np.inf, np.nan, 0])
    logs = np.asarray(random.loggamma(key, np.float32([0, 1e-9]), method="approximate"))
    assert logs[0] == -np.inf and -np.inf < logs[1] < -1e6
    for dtype in (np.float16, ml_dtypes.bfloat16):
        assert random.gamma(key, 2.0, (3,), dtype, method="approximate").dtype == dtype


def test_methods_are_named():
    key, fast = random.key(0), random.key(0, impl="rbg")
    for name, args in (
        ("gamma", (2.0,)),
        ("loggamma", (2.0,)),
        ("beta", (2.0, 3.0)),
        ("chisquare", (2.0,)),
        ("poisson", (2.0,)),
    ):
        sample = getattr(random, name)
        np.testing.assert_array_equal(sample(key, *args, (3,)), sample(key, *args, (3,), method="exact"))
        assert np.any(
            np.asarray(sample(key, *args, (9,))) != np.asarray(sample(key, *args, (9,), method="approximate"))
        )
        with pytest.raises(ValueError, match=f"{name}: method is one of 'exact', 'approximate', got 'fast'"):
            sample(key, *args, method="fast")
        program = str(make_jaxpr(lambda k, s=sample, a=args: s(k, *a, (3,), method="approximate"))(key))
        assert "while" not in program and "random_gamma" not in program  # no loop
    with pytest.raises(NotImplementedError, match="method='approximate' takes it"):
        random.poisson(fast, 2.0)
    assert random.poisson(fast, 2.0, (3,), method="approximate").shape == (3,)
    with pytest.raises(TypeError, match="method"):
        random.normal(key, method="exact")


def test_derivative_of_approximate_gamma_numbers():
    """The mean of the numbers is `a`; so the mean of their derivatives is 1."""
    slope = grad(lambda a: random.gamma(random.key(1), a, (40_000,), method="approximate").mean())
    for a in (0.3, 2.0, 30.0):
        assert abs(float(slope(a)) - 1) < 0.02
    with config.enable_x64(True):
        check_grads(lambda a: random.loggamma(random.key(1), a, (5,), method="approximate"), (0.7,), order=2, rtol=1e-4)


def test_streams_of_poisson_numbers_do_not_depend_on_the_width_of_the_rate():
    """As in the reference system: `key(42)`, rates up to 30, drawn under x64."""
    with config.enable_x64(True):
        rates = np.linspace(0.1, 30, 64)
        for r in (rates, rates.astype(np.float32)):
            assert np.asarray(random.poisson(random.key(42), r))[:8].tolist() == [0, 1, 0, 1, 0, 1, 3, 3]
        assert np.asarray(random.poisson(random.key(42), 3.0, (8,))).tolist() == [6, 2, 2, 1, 5, 2, 3, 3]


def test_shapes_of_samples():
    key, p = random.key(0), np.full((4, 3), 1 / 3, np.float32)
    assert random.t(key, np.float32([2, 3])).shape == (2,)
    for n, shape, expected in (
        (9.0, None, (4, 3)),
        (9.0, (4,), (4, 3)),
        (9.0, (2, 4), (2, 4, 3)),
        (np.ones((2, 1), "f"), None, (2, 4, 3)),
    ):
        assert random.multinomial(key, n, p, shape=shape).shape == expected
    for shape in ((4, 3), (7,)):
        with pytest.raises(ValueError, match="broadcast"):
            random.multinomial(key, 9.0, p, shape=shape)


def test_the_type_of_keys():
    def draw(key: random.Key) -> int:
        return key

    assert typing.get_type_hints(draw)["key"] is random.Key
    key = random.key(0)
    assert random.Key(key) is key and isinstance(key, random.Key.__supertype__)


class Holder:
    """An object whose only conversion to an array is `__jax_array__`."""

    def __init__(self, x):
        self.x = np.asarray(x, np.float32)

    def __jax_array__(self):
        return self.x


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_matrices_of_short_floats_are_decomposed_in_float32(dtype):
    covariance = np.array([[2, 1], [1, 2]], np.float32)
    for method in ("cholesky", "eigh", "svd"):
        for mean in (np.zeros(2, np.float32), np.zeros(2, dtype)):
            x = random.multivariate_normal(random.key(1), mean, covariance.astype(dtype), (4000,), dtype, method=method)
            assert x.dtype == dtype
            np.testing.assert_allclose(np.cov(np.asarray(x, np.float32).T), covariance, atol=0.2)
    q = random.orthogonal(random.key(0), 3, dtype=dtype)
    assert q.dtype == dtype
    q = np.asarray(q, np.float32)
    np.testing.assert_allclose(q @ q.T, np.eye(3), atol=0.03)


def test_counts_are_drawn_in_the_dtype_of_their_parameters():
    """The dtype of the result, and of the mode, change no number."""
    key, p = random.key(3), np.float32([0.2, 0.3, 0.5])
    samplers = {
        "float16": lambda **kw: random.binomial(key, np.float32(9), p, **kw),
        "int16": lambda **kw: random.geometric(key, p, **kw),
        "bfloat16": lambda **kw: random.multinomial(key, np.float32(9), p, **kw),
    }
    for dtype, draw in samplers.items():
        numbers = np.asarray(draw(), np.float32)
        np.testing.assert_array_equal(np.asarray(draw(dtype=dtype), np.float32), numbers)
        with config.enable_x64(True):
            np.testing.assert_array_equal(np.asarray(draw(), np.float32), numbers)


PROBABILITIES = {
    "categorical": lambda p: random.categorical(random.key(0), p),
    "choice": lambda p: random.choice(random.key(0), p),
    "choice by p": lambda p: random.choice(random.key(0), 2, p=p),
    "dirichlet": lambda p: random.dirichlet(random.key(0), p),
    "multinomial": lambda p: random.multinomial(random.key(0), 10.0, p),
    "multivariate_normal": lambda p: random.multivariate_normal(random.key(0), p, np.eye(2, dtype=np.float32)),
}


@pytest.mark.parametrize("name", PROBABILITIES)
def test_parameters_are_arrays(name):
    draw, p = PROBABILITIES[name], [0.25, 0.75]
    np.testing.assert_array_equal(draw(Holder(p)), draw(np.float32(p)))
    for wrong in (p, "text", None, float):
        if not (wrong is None and name == "choice by p"):
            with pytest.raises(TypeError, match=f"{name.split()[0]}: an array or a number is needed"):
                draw(wrong)
