"""Operations that are composed become TensorFlow functions of their own, one for all uses; placement and exported calls."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import concurrent.futures
import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.autodiff import grad
from bedrax.core import config
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.jax2tf import convert
from bedrax.lax.primitives import callbacks
from bedrax.xla_backend import device_put, devices, export, jit

A = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)


def _convert(fun, **options):
    return convert(fun, native_serialization=False, **options)


def _four_uniforms(words):
    key = random.wrap_key_data(words)
    return [random.uniform(k, (3,)) for k in random.split(key, 4)]


def test_uses_of_one_type_share_a_function():
    f = tf.function(_convert(_four_uniforms), autograph=False)
    words = np.array([1, 2], np.uint32)
    concrete = f.get_concrete_function(tf.constant(words))
    calls = [op.get_attr("f").name for op in concrete.graph.get_operations() if op.type == "PartitionedCall"]
    assert len(calls) >= 4 and len(set(calls)) <= 2  # the split, and the draws
    assert len(concrete.graph.get_operations()) < 80
    for actual, expected in zip(concrete(tf.constant(words)), _four_uniforms(words), strict=True):
        np.testing.assert_array_equal(actual, expected)


def _decomposed(x):
    lu, pivots, _ = lax.lu(x)
    return lax.igamma(lax.abs(x), lax.abs(x)), lu, pivots


def test_functions_compile_and_are_saved(tmp_path):
    expected = _decomposed(A)
    module = tf.Module()
    spec = [tf.TensorSpec([None, 4, 4])]
    f = _convert(_decomposed, polymorphic_shapes="(b, _, _)")
    module.f = tf.function(f, autograph=False, input_signature=spec)
    compiled = tf.function(f, autograph=False, jit_compile=True)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for run in (module.f, compiled, loaded.f):
        gamma, lu, pivots = run(tf.constant(A))
        np.testing.assert_allclose(gamma, expected[0], rtol=1e-5)
        np.testing.assert_allclose(lu, expected[1], atol=1e-5)
        np.testing.assert_array_equal(pivots, expected[2])


def _by_tflite(fun, x):
    """Results of TFLite's interpreter, which has builtin operations only."""
    module = tf.Module()
    spec = [tf.TensorSpec(x.shape, x.dtype)]
    module.f = tf.function(_convert(fun, enable_xla=False), autograph=False, input_signature=spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
        interpreter = tf.lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_tflite_has_remainders():
    x = np.array([5, -5, 5.5, -0.3, 0, np.inf, np.nan], np.float32)
    (found,) = _by_tflite(lambda x: lax.rem(x, np.float32(-2)), x)
    np.testing.assert_array_equal(found, np.fmod(x, np.float32(-2)))
    (found,) = _by_tflite(lambda x: jnp.mod(x, np.float32(0.7)), x)
    np.testing.assert_allclose(found, np.mod(x, np.float32(0.7)), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32"])
def test_tflite_counts_leading_zeros(dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 2, 7, 8, 100, limits.max, limits.max // 2, limits.max // 2 + 1, limits.min], dtype)
    (found,) = _by_tflite(lax.clz, x)
    np.testing.assert_array_equal(found, lax.clz(x))


@pytest.mark.parametrize("dtype", ["int4", "uint4", "uint8", "int16", "int64", "uint64"])
def test_leading_zeros_of_other_dtypes(dtype):
    limits = jnp.iinfo(dtype)
    wide = dtype.endswith("64")
    x = np.array([0, 1, limits.max, limits.max // 2, limits.min], dtype if wide else "int32").astype(jnp.dtype(dtype))
    with config.enable_x64(wide):
        wanted = np.asarray(lax.clz(x)).astype(np.int32)
        found = _convert(lambda x: lax.convert_element_type(lax.clz(x), np.int32))(x)
    np.testing.assert_array_equal(found, wanted)


def test_tflite_runs_composed_functions():
    def fun(x):
        return lax.cummax(lax.integer_pow(x, 3), axis=0), lax.lu(x)[0]

    found = _by_tflite(fun, A[0])
    for expected in map(np.asarray, fun(A[0])):
        assert any(v.shape == expected.shape and np.allclose(v, expected, atol=1e-4) for v in found)


def test_tflite_draws_the_same_random_numbers():
    """It has neither shifts to the left nor `or`, `and` of bits: keys, splits and draws do without."""

    def draw(words):
        keys = random.split(random.wrap_key_data(words), 3)
        return lax.scan(lambda total, key: (total + random.uniform(key, (4,)), None), jnp.zeros(4), keys)[0]

    words = np.array([7, 2**32 - 5], np.uint32)
    (found,) = _by_tflite(draw, words)
    np.testing.assert_array_equal(found, draw(words))


@pytest.mark.parametrize("options", [{"lower": True}, {"lower": False}, {"left_side": True, "transpose_a": True}])
def test_tflite_solves_triangular_systems(options):
    def solve(x):
        return lax.triangular_solve(x + 4 * jnp.eye(4), x, **{"left_side": True, **options})

    (found,) = _by_tflite(solve, A[0])
    np.testing.assert_allclose(found, solve(A[0]), rtol=1e-5, atol=1e-6)


def test_graphs_have_no_operations_that_tfjs_lacks():
    """It misreads `EnsureShape`, lacks `TensorScatterAdd`, and solves no triangular systems."""

    def fun(x):
        sums = lax.scan(lambda total, row: (total + row, total), jnp.zeros(4), x)[1]
        return lax.triangular_solve(jnp.eye(4), x.T, left_side=True), sums.at[np.array([0, 0, 1])].add(1.0)

    f = tf.function(_convert(fun, polymorphic_shapes="(b, 4)", enable_xla=False), autograph=False)
    graph = f.get_concrete_function(tf.TensorSpec([None, 4])).graph.as_graph_def()
    found = {
        node.op for body in (graph, *graph.library.function) for node in getattr(body, "node", ()) or body.node_def
    }
    assert "ScatterNd" in found and not found & {"EnsureShape", "TensorScatterAdd", "MatrixTriangularSolve"}
    for actual, expected in zip(f(A[0]), fun(A[0]), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_gradients_pass_through_composed_functions():
    def loss(x):
        return lax.reduce_sum(lax.square(lax.lu(x)[0]), (0, 1, 2))

    f = tf.function(_convert(loss), autograph=False)
    with tf.GradientTape() as tape:
        x = tf.constant(A)
        tape.watch(x)
        value = f(x)
    np.testing.assert_allclose(tape.gradient(value, x), grad(loss)(A), rtol=2e-3, atol=1e-3)


def test_concurrent_threads_convert_a_function():
    f = _convert(lambda a, x: lax.igamma(a, x))
    a = np.linspace(1, 2, 11).astype(np.float32)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for out in pool.map(lambda _: f(a, a), range(16)):
            np.testing.assert_allclose(out, lax.igamma(a, a), rtol=1e-5)


def test_placement_changes_no_value():
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(_convert(lambda x: device_put(x) + 1)(x), x + 1)
    np.testing.assert_array_equal(_convert(lambda x: device_put(x, devices()[0]) * 2)(x), x * 2)


def test_calls_of_exported_programs():
    exported = export.export(jit(lambda x: (lax.sin(x), x * 2)))(np.ones(3, np.float32))
    x = np.arange(3, dtype=np.float32)
    f = _convert(lambda x: exported.call(x)[0] + exported.call(x)[1])
    np.testing.assert_allclose(tf.function(f, autograph=False)(x), np.sin(x) + 2 * x, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="only XLA can run"):
        _convert(exported.call, enable_xla=False)(x)


@pytest.mark.parametrize("nested", [False, True])
def test_eigenvalues_compile(nested):
    """Operations without a kernel in TensorFlow's XLA are composed in functions that are traced for it.

    A function in them, which other graphs share, is made once for it and once for other graphs.
    """

    def fun(x):
        w, v = jnp.linalg.eig(x)
        return jnp.sort(jnp.abs(w)), jnp.abs(x @ v - v * w[..., None, :]), jnp.linalg.svd(x + 1j * x.swapaxes(1, 2))[1]

    f = _convert(jit(fun) if nested else fun)
    tf.function(f, autograph=False)(tf.constant(A))
    w, rest, s = tf.function(f, autograph=False, jit_compile=True)(tf.constant(A))
    np.testing.assert_allclose(w, np.sort(np.abs(np.linalg.eigvals(A))), rtol=1e-3)
    np.testing.assert_allclose(rest, np.zeros_like(rest), atol=1e-3)
    expected = np.linalg.svd(A + 1j * A.swapaxes(1, 2), compute_uv=False)
    np.testing.assert_allclose(s, expected, rtol=1e-3)


def test_prints_are_tensorflows(tmp_path, capfd):
    """`debug.print` is an operation that a saved model carries; a format of its own calls Python."""

    def fun(x):
        callbacks.debug_print("x = {} and {y}", x, y=x[0] + 1)
        callbacks.debug_print("first {:.2f}", x[0])
        return x * 2

    module = tf.Module()
    spec = [tf.TensorSpec([2])]
    module.f = tf.function(_convert(fun), autograph=False, input_signature=spec)
    np.testing.assert_array_equal(module.f(tf.constant([1.5, 2.0])), [3, 4])
    assert sorted(capfd.readouterr().out.splitlines()) == ["first 1.50", "x = [1.5 2] and 2.5"]
    module.g = tf.function(
        _convert(lambda x: (callbacks.debug_print("saved {}", x), x)[1]), autograph=False, input_signature=spec
    )
    del module.f
    tf.saved_model.save(module, str(tmp_path))
    capfd.readouterr()
    tf.saved_model.load(str(tmp_path)).g(tf.constant([1.0, 2.0]))
    assert "saved [1 2]" in capfd.readouterr().out


def test_callbacks_call_python():
    called = []

    def host(x):
        called.append(x.shape)
        return np.cumsum(x)

    def fun(x):
        kind = ShapeDtypeStruct(x.shape, x.dtype)
        callbacks.pure_callback(host, kind, x)  # its result is not used
        return callbacks.pure_callback(host, kind, x) + callbacks.io_callback(host, kind, x * 2)

    x = np.arange(3, dtype=np.float32)
    f = tf.function(
        _convert(fun, polymorphic_shapes=["(b,)"]), autograph=False, input_signature=[tf.TensorSpec([None])]
    )
    np.testing.assert_array_equal(f(x), 3 * np.cumsum(x))
    assert called == [(3,), (3,)]
