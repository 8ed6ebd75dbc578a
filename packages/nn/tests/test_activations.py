"""Activations against their formulas in float64, and their derivatives against finite differences."""

import math

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import nn
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core.staging import make_jaxpr
from bedrax.nn import flags

X = np.array([-7.3, -3.2, -2, -0.9, -0.4, 0.2, 0.7, 1.6, 2.5, 6.4], np.float32)
erf = np.vectorize(math.erf)
logistic = lambda x: 1 / (1 + np.exp(-x))
SELU = 1.0507009873554805, 1.6732632423543772

FORMULAS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": logistic,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x * logistic(x),
    "swish": lambda x: x * logistic(x),
    "log_sigmoid": lambda x: np.log(logistic(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(x)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_derivatives(name):
    f, formula = getattr(nn, name), FORMULAS[name]
    x = X.astype(np.float64)
    np.testing.assert_allclose(f(X), formula(x), rtol=2e-5, atol=2e-6)
    slope = (formula(x + 1e-5) - formula(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(vmap(grad(f))(X), slope, rtol=1e-3, atol=1e-4)
    assert np.isfinite(np.asarray(vmap(grad(f))(np.float32([-1e4, -100, 0, 100, 1e4])))).all()
    for dtype in (np.float16, jnp.bfloat16):
        assert f(X.astype(dtype)).dtype == dtype


@pytest.mark.parametrize(
    "name,x,slope",
    [
        ("relu", 0.0, 0),
        ("relu6", 0.0, 0),
        ("relu6", 6.0, 0),
        ("hard_tanh", 1.0, 1),
        ("hard_tanh", -1.0, 1),
        ("leaky_relu", 0.0, 1),
        ("elu", 0.0, 1),
        ("sparse_plus", 1.0, 1),
        ("silu", 0.0, 0.5),
    ],
)
def test_derivatives_at_kinks(name, x, slope):
    assert float(grad(getattr(nn, name))(x)) == slope


@pytest.mark.parametrize("name,ends", [("relu", "max"), ("relu6", "min")])
def test_a_rectifier_is_a_maximum_with_the_derivative_of_a_step(name, ends):
    f, high = getattr(nn, name), {"relu": np.inf, "relu6": 6.0}[name]
    x = np.array([-np.inf, -1, -0.0, 0, 1, 6, 7, np.inf, np.nan], np.float32)
    (call,) = make_jaxpr(f)(x).eqns
    (equation,) = call.params["jaxpr"].eqns
    inner = [eqn.primitive.name for eqn in equation.params["call_jaxpr"].eqns]
    assert equation.primitive.name == "custom_jvp_call" and inner == ["max", "min"][: len(inner)] and inner[-1] == ends
    steps = np.where((x > 0) & (x < high) | (x == high) & (high == np.inf), 1, 0)
    np.testing.assert_array_equal(vmap(grad(f))(x), steps)
    np.testing.assert_array_equal(vmap(grad(grad(f)))(x), np.zeros_like(x))
    np.testing.assert_array_equal(grad(lambda x: f(x).sum())(x), steps)


def test_relu_keeps_nan_and_integers():
    assert np.isnan(nn.relu(np.float32("nan")))
    assert nn.relu(np.array([-1, 2])).tolist() == [0, 2] and nn.relu(np.array([-1, 2])).dtype == np.int32


def test_parameters():
    np.testing.assert_allclose(nn.elu(X, 0.5), np.where(X > 0, X, 0.5 * np.expm1(X)), rtol=1e-5)
    np.testing.assert_allclose(nn.celu(X, 0.5), np.where(X > 0, X, 0.5 * np.expm1(X / 0.5)), rtol=1e-5)
    np.testing.assert_allclose(nn.leaky_relu(X, 0.2), np.where(X > 0, X, 0.2 * X), rtol=1e-5)
    np.testing.assert_allclose(nn.squareplus(X, 1.0), (X + np.sqrt(X * X + 1)) / 2, rtol=1e-4, atol=1e-6)
    exact = 0.5 * X.astype(np.float64) * (1 + erf(X / math.sqrt(2)))
    np.testing.assert_allclose(nn.gelu(X, approximate=False), exact, rtol=1e-4, atol=1e-7)


def test_log1mexp():
    x = np.float32([1e-6, 0.3, 0.7, 1, 30])
    wide = x.astype(np.float64)
    expected = np.where(x < 0.7, np.log(-np.expm1(-wide)), np.log1p(-np.exp(-wide)))
    np.testing.assert_allclose(nn.log1mexp(x), expected, rtol=1e-5)
    assert nn.log1mexp(0.0) == -np.inf and np.isnan(nn.log1mexp(-1.0))
    np.testing.assert_allclose(vmap(grad(nn.log1mexp))(x), 1 / np.expm1(x.astype(np.float64)), rtol=1e-4)


def test_glu():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(nn.glu(x), x[:, :2] * logistic(x[:, 2:]), rtol=1e-6)
    with pytest.raises(ValueError, match="axis of even size"):
        nn.glu(x, axis=0)


def softmax64(x, axis, where=True):
    weights = np.where(where, np.exp(x.astype(np.float64)), 0)
    return weights / weights.sum(axis=axis, keepdims=True)


RANDOM = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
WHERE = RANDOM > -0.5


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
@pytest.mark.parametrize("own_rule", [False, True])
def test_softmax(axis, own_rule):
    with flags.softmax_custom_jvp(own_rule):
        np.testing.assert_allclose(nn.softmax(RANDOM, axis), softmax64(RANDOM, axis), rtol=1e-5)
        np.testing.assert_allclose(nn.softmax(RANDOM, axis, where=WHERE), softmax64(RANDOM, axis, WHERE), rtol=1e-5)
        w = np.cos(RANDOM)
        slope = grad(lambda x: jnp.sum(nn.softmax(x, axis, where=WHERE) * w))(RANDOM)
        y = softmax64(RANDOM, axis, WHERE)
        np.testing.assert_allclose(slope, y * (w - (y * w).sum(axis=axis, keepdims=True)), rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(nn.softmax(np.float32([1e4, 0, -1e4])), [1, 0, 0])


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
def test_log_softmax(axis):
    with np.errstate(divide="ignore"):
        expected = np.log(softmax64(RANDOM, axis, WHERE))
    np.testing.assert_allclose(nn.log_softmax(RANDOM, axis, where=WHERE), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(nn.log_softmax(RANDOM, axis), np.log(softmax64(RANDOM, axis)), rtol=1e-4, atol=1e-6)
    left_out = grad(lambda x: jnp.sum(jnp.where(WHERE, nn.log_softmax(x, axis, where=WHERE), 0)))(RANDOM)
    assert (np.asarray(left_out)[~WHERE] == 0).all() and np.isfinite(np.asarray(left_out)).all()


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
def test_logsumexp_and_logmeanexp(axis):
    x = RANDOM.astype(np.float64)
    total = lambda v, **k: np.sum(v, axis=axis, **k)
    np.testing.assert_allclose(nn.logsumexp(RANDOM, axis), np.log(total(np.exp(x))), rtol=1e-5)
    np.testing.assert_allclose(
        nn.logsumexp(RANDOM, axis, where=WHERE, keepdims=True),
        np.log(total(np.exp(x) * WHERE, keepdims=True)),
        rtol=1e-5,
    )
    size, sign = nn.logsumexp(RANDOM, axis, b=-RANDOM, return_sign=True)
    np.testing.assert_allclose(sign * np.exp(size), total(-x * np.exp(x)), rtol=1e-4)
    np.testing.assert_allclose(
        nn.logmeanexp(RANDOM, axis, where=WHERE), np.log(total(np.exp(x) * WHERE) / total(WHERE)), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        grad(lambda v: jnp.sum(nn.logsumexp(v, axis)))(RANDOM), softmax64(RANDOM, axis), rtol=1e-4
    )


def test_logsumexp_at_infinity():
    inf = np.inf
    assert nn.logsumexp(np.float32([-inf, -inf])) == -inf and nn.logsumexp(np.float32([inf, 1])) == inf
    assert nn.logsumexp(np.float32([1e4, 1e4])) == np.float32(1e4 + math.log(2))
    assert np.isnan(nn.logsumexp(np.float32([0, 0]), b=-1.0))
    z = np.complex64([1 + 2j, 3j])
    np.testing.assert_allclose(nn.logsumexp(z), np.log(np.exp(z).sum()), rtol=1e-5)


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_standardize(algorithm):
    x = RANDOM.astype(np.float64)
    expected = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    np.testing.assert_allclose(nn.standardize(RANDOM, 0, algorithm=algorithm), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(nn.standardize(RANDOM, mean=1.0, variance=4.0, epsilon=0.0), (x - 1) / 2, rtol=1e-5)
    with pytest.raises(ValueError, match="algorithm is one of"):
        nn.standardize(RANDOM, algorithm="other")


def test_one_hot():
    assert nn.one_hot(np.array([0, 2, 5, -1]), 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    first = nn.one_hot(np.array([[0, 1]]), 3, axis=1, dtype=np.int8)
    assert first.shape == (1, 3, 2) and first.dtype == np.int8 and first.tolist() == [[[1, 0], [0, 1], [0, 0]]]
    with pytest.raises(ValueError, match="out of bounds"):
        nn.one_hot(np.array([1]), 2, axis=5)


def test_names():
    assert set(nn.__all__) <= set(dir(nn)) and all(hasattr(nn, name) for name in nn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nn.nothing


@pytest.mark.parametrize(
    "name", "celu elu hard_tanh log_sigmoid mish relu relu6 selu softplus sparse_plus sparse_sigmoid".split()
)
def test_results_of_python_numbers_are_weakly_typed(name):
    f = getattr(nn, name)
    assert f(2.0).aval.weak_type and f(2).aval.weak_type and f(True).dtype != bool
    half = f(np.float16(2))
    assert half.dtype == np.float16 and not half.aval.weak_type
    np.testing.assert_allclose(f(2.0), f(np.float32(2)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
@pytest.mark.parametrize("count", [4, 128, 256, 300, 1000])
def test_one_hot_of_narrow_integers_has_one_class(dtype, count):
    x = np.array([0, 3, 100], dtype)
    np.testing.assert_array_equal(nn.one_hot(jnp.asarray(x), count), np.arange(count) == x[:, None])
    assert not np.any(nn.one_hot(jnp.array([-1], np.int8), count))


def test_standardize_of_nearly_equal_numbers_is_finite():
    x = np.array(
        [4097.1, 4097.1, 4097.2], np.float32
    )  # by rounding, the mean of squares is below the square of the mean
    assert np.all(np.isfinite(nn.standardize(x)))
