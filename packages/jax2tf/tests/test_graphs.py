"""Graphs have the operations of handwritten ones: lists of the operations that small functions become."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import collections
import functools
import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax, nn, random
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.core.names import named_scope
from bedrax.jax2tf import convert

X = np.linspace(-2, 7, 24, dtype=np.float32).reshape(4, 6)
KEY = np.array([1, 2], np.uint32)

# Operations that say how a function is called, and what it is given.
_CALLING = {"Const", "Placeholder", "Identity", "IdentityN", "NoOp", "PreventGradient"}


def _concrete(fun, *args, **options):
    f = tf.function(convert(fun, native_serialization=False, **options), autograph=False)
    return f.get_concrete_function(*[tf.TensorSpec(np.shape(a), np.asarray(a).dtype) for a in args])


def _operations(concrete) -> list[str]:
    return [op.type for op in concrete.graph.get_operations() if op.type not in _CALLING]


def _constants(concrete) -> int:
    return sum(op.type == "Const" for op in concrete.graph.get_operations())


def _standardize(x):
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(lax.square(x), axis=-1, keepdims=True) + 1e-5)


def _manual_softmax(x):
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


MEAN, VARIANCE, SCALE, OFFSET = np.linspace(0.1, 2, 24, dtype=np.float32).reshape(4, 6)


def _batch_norm(x, mean=MEAN, variance=VARIANCE, shape=(-1, 2, 1, 6)):
    """As Flax has it: all are made images of one pixel first."""
    mean, variance, scale, offset = (jnp.reshape(v, (1, 1, 1, 6)) for v in (mean, variance, SCALE, OFFSET))
    return (x.reshape(shape) - mean) * (lax.rsqrt(variance + 1e-5) * scale) + offset


def _batch_norm_of_batch(x):
    x = x.reshape(-1, 2, 1, 6)
    mean = jnp.mean(x, (0, 1, 2))
    return _batch_norm(x, mean, jnp.mean(lax.square(x - mean), (0, 1, 2)))


WEIGHTS = np.ones((6, 3), np.float32)
BIAS = np.ones(3, np.float32)

GRAPHS = {
    "relu": (nn.relu, ["Relu"]),
    "maximum with 0": (lambda x: jnp.maximum(x, 0), ["Relu"]),
    "relu6": (nn.relu6, ["Relu6"]),
    "clip to 6": (lambda x: jnp.clip(x, 0, 6), ["Relu", "Minimum"]),
    "clip": (lambda x: jnp.clip(x, -1, 1), ["Maximum", "Minimum"]),
    "clamp": (lambda x: lax.clamp(-1.0, x, 1.0), ["Maximum", "Minimum"]),
    "leaky relu": (nn.leaky_relu, ["LeakyRelu"]),
    "elu": (nn.elu, ["Elu"]),
    "max": (lambda x: jnp.maximum(x, x * x), ["Mul", "Maximum"]),
    "min": (lambda x: jnp.minimum(x, x * x), ["Mul", "Minimum"]),
    "reduce_max": (lambda x: jnp.max(x, 1), ["Max"]),
    "reduce_min": (lambda x: jnp.min(x, 1), ["Min"]),
    "softmax": (nn.softmax, ["Softmax"]),
    "softmax, mapped": (vmap(nn.softmax), ["Softmax"]),
    "relu, mapped over columns": (vmap(nn.relu, 1), ["Relu", "Transpose"]),
    "softmax, mapped twice": (lambda x: vmap(vmap(nn.softmax))(x.reshape(2, 2, 6)), ["Reshape", "Softmax"]),
    "softmax, written out": (_manual_softmax, ["Max", "Sub", "Exp", "Sum", "RealDiv"]),
    "gelu": (nn.gelu, ["Mul", "Pow", "Mul", "AddV2", "Mul", "Tanh", "AddV2", "Mul"]),
    "leaky relu of a slope": (lambda x: nn.leaky_relu(x, 0.25), ["LeakyRelu"]),
    "hard tanh": (nn.hard_tanh, ["Minimum", "Maximum"]),
    "hard silu": (nn.hard_silu, ["AddV2", "Relu6", "RealDiv", "Mul"]),
    "in a function": (jit(lambda x: nn.relu(x) + 1), ["Relu", "AddV2"]),
    "mapped layer": (vmap(lambda y: nn.relu(y @ WEIGHTS)), ["MatMul", "Relu"]),
    "log softmax": (nn.log_softmax, ["LogSoftmax"]),
    "mean": (lambda x: jnp.mean(x, axis=0), ["Mean"]),
    "layer": (lambda x: nn.relu(x @ WEIGHTS + BIAS), ["MatMul", "BiasAdd", "Relu"]),
    "layer on more axes": (lambda x: x.reshape(2, 2, 6) @ WEIGHTS + BIAS, ["Reshape", "BatchMatMulV2", "BiasAdd"]),
    "standardize": (_standardize, ["Mean", "Sub", "Square", "Mean", "AddV2", "Rsqrt", "Mul"]),
    "batch norm": (_batch_norm, ["Reshape", "FusedBatchNormV3"]),
    "batch norm of the batch": (_batch_norm_of_batch, ["Reshape", "Mean", "Sub", "Square", "Mean", "FusedBatchNormV3"]),
    "batch norm, another grouping, nothing added": (
        lambda x: lax.rsqrt(jnp.asarray(VARIANCE) + 1e-3) * (x.reshape(2, 2, 1, 6) - MEAN) * SCALE,
        ["Reshape", "FusedBatchNormV3"],
    ),
    "batch norm without parameters": (
        lambda x: (x.reshape(2, 2, 1, 6) - MEAN) * lax.rsqrt(jnp.asarray(VARIANCE) + 1e-3),
        ["Reshape", "FusedBatchNormV3"],
    ),
    "outer": (lambda x: x[:, :, None] * x[:, None, :], ["ExpandDims", "ExpandDims", "Mul"]),
    "where": (lambda x: jnp.where(x > 1, x, 0.0), ["Greater", "SelectV2"]),
    "unused": (lambda x: (jnp.sin(x), x + 1)[1], ["AddV2"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_operations(name):
    fun, expected = GRAPHS[name]
    concrete = _concrete(fun, X)
    assert _operations(concrete) == expected
    np.testing.assert_allclose(concrete(tf.constant(X)), fun(jnp.asarray(X)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "relu",
        "relu6",
        "leaky relu",
        "elu",
        "hard tanh",
        "clip",
        "softmax",
        "softmax, mapped",
        "log softmax",
        "mean",
        "layer",
        "batch norm",
        "batch norm of the batch",
    ],
)
def test_derivatives_are_ours(name):
    """A fused operation has the derivative of the function, also at zero and at the ends."""
    fun = GRAPHS[name][0]
    total = lambda x: jnp.sum(jnp.sin(fun(x)))
    x = np.concatenate([X, np.array([[0, 6, -1, 1, 0, 6], [6, 0, 1, -1, 2, 2]], np.float32)])
    with tf.GradientTape() as tape:
        given = tf.constant(x)
        tape.watch(given)
        value = convert(total, native_serialization=False)(given)
    np.testing.assert_allclose(tape.gradient(value, given), grad(total)(x), rtol=1e-4, atol=1e-5)


@functools.wraps(nn.relu)
def _relu(x):
    return nn.relu(x) * 2


# What looks like a pattern, and is none.
NEARLY = {
    "other axis": lambda x: jnp.exp(x - jnp.max(x, 0, keepdims=True)) / jnp.sum(jnp.exp(x), 1, keepdims=True),
    "sum of others": lambda x: jnp.exp(x - jnp.max(x, 1, keepdims=True)) / jnp.sum(x * x, 1, keepdims=True),
    "mean of fewer": lambda x: jnp.sum(x, 1) / 5,
    "mean of more": lambda x: jnp.sum(x, (0, 1)) / 6,
    "bias of rows": lambda x: x + jnp.arange(4.0)[:, None],
    "bias of a scalar": lambda x: x + jnp.ones((1, 1)),
    "relu6 upside down": lambda x: jnp.maximum(jnp.minimum(x, 0), 6),
    "relu of another": lambda x: jnp.where(x <= 0, jnp.zeros_like(x), x * x),
    "steep": lambda x: jnp.where(x >= 0, x, 3 * x),
    "elu of another slope": lambda x: nn.elu(x, 2.0),
    "select the other way": lambda x: jnp.where(x <= 0, x, 0.0),
    "softmax of rows": lambda x: nn.softmax(x, 0),
    "softmax of all": lambda x: nn.softmax(x, (0, 1)),
    "softmax of rows, mapped": vmap(lambda x: nn.softmax(x.reshape(2, 3), 0)),
    "softmax of rows, mapped over columns": lambda x: vmap(lambda y: nn.softmax(y, 0), 1, 2)(x.reshape(2, 3, 4)),
    "softmax, mapped over columns": vmap(nn.softmax, 1, 1),
    "softmax of some": lambda x: nn.softmax(x, where=x > 0),
    "softmax of some, mapped": lambda x: vmap(lambda y, w: nn.softmax(y, where=w))(x, x > 0),
    "leaky relu of an array": lambda x: nn.leaky_relu(x, x[0, 0]),
    "leaky relu, mapped over its slope": lambda x: vmap(nn.leaky_relu, (None, 0))(x, x[0]),
    "leaky relu of another type": lambda x: nn.leaky_relu(x.astype("bfloat16"), np.float32(0.2)),
    "relu of integers": lambda x: nn.relu(x.astype("int32")),
    "gelu by the error function": lambda x: nn.gelu(x - 4, approximate=False),
    "a function of the same name": lambda x: jit(_relu)(x),
    "square softmax": lambda x: nn.softmax(x[:, :4], axis=0) + nn.softmax(x[:, :4].T, axis=0),
    "rows and columns": lambda x: jnp.broadcast_to(x[:1], (4, 6)) * jnp.broadcast_to(x[:, :1], (4, 6)),
    "repeated": lambda x: jnp.broadcast_to(x[0], (4, 6)) * jnp.broadcast_to(x[0], (4, 6)),
    "repeated and used": lambda x: (jnp.broadcast_to(x[0], (4, 6)) + x, jnp.broadcast_to(x[0], (4, 6)))[0],
    "batch norm of vectors": lambda x: _batch_norm(x, shape=(1, 4, 6))[0],
    "batch norm of one pixel": lambda x: _batch_norm(x[0], shape=(1, 1, 1, 6)),
    "batch norm of rows": lambda x: (
        (x.reshape(2, 2, 1, 6) - x[:2].reshape(2, 1, 1, 6)) * lax.rsqrt(jnp.asarray(VARIANCE) + 1.0) + 1
    ),
    "batch norm of pixels": lambda x: (
        (x.reshape(2, 2, 1, 6) - MEAN) * lax.rsqrt(x.reshape(2, 2, 1, 6) ** 2 + 1.0) + OFFSET
    ),
    "batch norm that is used": lambda x: (lambda y: y * SCALE + OFFSET + y)(
        (x.reshape(2, 2, 1, 6) - MEAN) * lax.rsqrt(jnp.asarray(VARIANCE) + 1.0)
    ),
    "three factors": lambda x: (x.reshape(2, 2, 1, 6) - MEAN) * lax.rsqrt(jnp.asarray(VARIANCE) + 1.0) * SCALE * x[0],
    "one row": lambda x: x + jnp.broadcast_to(x[:1, :1], (4, 6)),
}


@pytest.mark.parametrize("name", NEARLY)
def test_programs_that_are_nearly_patterns_are_converted_correctly(name):
    fun = NEARLY[name]
    np.testing.assert_allclose(_concrete(fun, X)(tf.constant(X)), fun(jnp.asarray(X)), rtol=1e-5, atol=1e-6)


def test_tensors_of_the_graph_are_not_copied_first():
    """Tensors of the graph need no copy. Variables and tensors from outside of the graph must be read."""

    def identities(*captured):
        f = tf.function(lambda x, y: convert(lambda *xs: sum(xs))(x, y, *captured), autograph=False)
        made = f.get_concrete_function(*[tf.TensorSpec((3,), tf.float32)] * 2)
        assert float(made(tf.ones(3), tf.ones(3))[0]) == 2 + len(captured)
        return sum(op.type in ("Identity", "ReadVariableOp") for op in made.graph.get_operations())

    none = identities()
    assert none < 4
    assert identities(tf.Variable(tf.ones(3))) > none
    assert identities(tf.ones(3)) > none


def test_equal_constants_are_one():
    fun = lambda x: jnp.reshape(jnp.reshape(x * 3, (6, 4)) + 3, (4, 6)) * 3
    concrete = _concrete(fun, X, with_gradient=False)
    assert _constants(concrete) == 3  # the number, and two shapes
    np.testing.assert_allclose(concrete(tf.constant(X)), fun(X), rtol=1e-6)


def test_generators_are_functions_that_uses_share():
    """Random numbers are few operations, and as many more for each use."""

    def draws(n):
        def fun(words):
            key = random.wrap_key_data(words)
            return [random.uniform(k, (3,)) for k in random.split(key, n)]

        concrete = _concrete(fun, KEY)
        return len(concrete.graph.get_operations()), len(concrete.graph.as_graph_def().library.function)

    (few, functions), (many, more) = draws(4), draws(12)
    assert few < 50 and many - few <= 8 * 11 and functions == more <= 4


def test_nested_jits_are_functions_of_their_names():
    @jit
    def block(x):
        for _ in range(4):
            x = jnp.sin(x) * 2 + x
        return x

    fun = lambda x: block(block(x)) + block(x)
    concrete = _concrete(fun, X)
    calls = [op for op in concrete.graph.get_operations() if op.type == "PartitionedCall"]
    assert len(calls) == 3 and len({op.get_attr("f").name for op in calls}) == 1
    assert "block" in calls[0].get_attr("f").name
    np.testing.assert_allclose(concrete(tf.constant(X)), fun(X), rtol=1e-5)
    twice = tf.function(lambda x: concrete(x), jit_compile=True, autograph=False)
    np.testing.assert_allclose(twice(tf.constant(X)), fun(X), rtol=1e-4, atol=1e-4)


def test_short_jits_are_in_place():
    assert _operations(_concrete(jit(lambda x: jnp.sin(x) + 1), X)) == ["Sin", "AddV2"]


def test_nested_jits_with_unknown_sizes():
    @jit
    def block(x):
        for _ in range(4):
            x = jnp.concatenate([x, x])[: x.shape[0]] + jnp.ones(x.shape) * x.shape[0]
        return x

    f = tf.function(
        convert(lambda x: block(x) * 2, native_serialization=False, polymorphic_shapes=["(b, _)"]),
        input_signature=[tf.TensorSpec([None, 6])],
        autograph=False,
    )
    for n in (1, 3):
        np.testing.assert_allclose(f(X[:n]), block(X[:n]) * 2, rtol=1e-6)


def test_names_are_scopes_primitives_and_lines():
    def fun(x):
        with named_scope("encoder"), named_scope("layer 1"):
            return jnp.sin(x)

    (name,) = [op.name for op in _concrete(fun, X).graph.get_operations() if op.type == "Sin"]
    line = fun.__code__.co_firstlineno + 2
    assert name == f"encoder/layer_1/sin.test_graphs.{line}/Sin"


def test_large_constants_are_held_once(tmp_path):
    weights = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    module = tf.Module()
    module.f = tf.function(
        convert(lambda x: jnp.tanh(x @ weights) @ weights, native_serialization=False),
        autograph=False,
        input_signature=[tf.TensorSpec([2, 256])],
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    size = sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file())
    assert size < 1.5 * weights.nbytes
    loaded = tf.saved_model.load(str(tmp_path))
    x = tf.ones([2, 256])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    np.testing.assert_allclose(y, np.tanh(np.ones((2, 256)) @ weights) @ weights, rtol=1e-3, atol=1e-3)
    expected = grad(lambda x: jnp.sum(jnp.tanh(x @ weights) @ weights))(np.ones((2, 256), np.float32))
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-2, atol=1e-2)


def test_the_operations_of_an_attention_layer():
    """A layer of attention: how many operations of each kind there are."""

    def attention(x):
        heads = [(x @ WEIGHTS + BIAS).reshape(2, 2, 3) for _ in range(3)]
        weights = nn.softmax(heads[0] @ heads[1].swapaxes(1, 2) / np.float32(3**0.5))
        return (weights @ heads[2]).reshape(4, 3) @ WEIGHTS.T + x

    found = collections.Counter(_operations(_concrete(attention, X)))
    assert found["Softmax"] == 1 and found["BiasAdd"] == 3 and found["MatMul"] == 4 and found["BatchMatMulV2"] == 2
    assert sum(found.values()) <= 17


def test_a_network_of_ten_dropouts():
    weights = np.ones((6, 6), np.float32)

    def network(x, words):
        for key in random.split(random.wrap_key_data(words, impl="unsafe_rbg"), 10):
            x = nn.relu(x @ weights)
            x = jnp.where(random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)
        return x

    concrete = _concrete(network, X, np.arange(4, dtype=np.uint32))
    assert len(concrete.graph.get_operations()) <= 300


WITH_SCALARS = {
    "maximum": lambda s: jnp.maximum(s, jnp.zeros(3)),
    "mean": lambda s: jnp.sum(s * X) / jnp.full(3, float(X.size)),
    "batch norm": lambda s: (s - jnp.broadcast_to(MEAN, (2, 2, 1, 6))) * lax.rsqrt(jnp.asarray(VARIANCE) + 1e-5),
}


@pytest.mark.parametrize("name", WITH_SCALARS)
def test_an_array_beside_a_scalar_gives_the_result_its_shape(name):
    fun, s = WITH_SCALARS[name], np.float32(-2)
    want = fun(jnp.asarray(s))
    found = _concrete(fun, s)(tf.constant(s))
    assert tuple(found.shape) == want.shape != ()
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("name", ["leaky_relu", "gelu"])
def test_activations_of_float64_have_its_precision(name):
    fun, x = getattr(nn, name), np.array([-1e6, -2, -0.3, 0.7, 2])
    with config.enable_x64(True):
        np.testing.assert_allclose(_concrete(fun, x)(tf.constant(x)), fun(x), rtol=1e-13)
