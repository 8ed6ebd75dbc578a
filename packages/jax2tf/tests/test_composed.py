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

from bedrax import lax, random
from bedrax.autodiff import grad
from bedrax.jax2tf import convert
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


def test_tflite_runs_composed_functions():
    def fun(x):
        return lax.cummax(lax.integer_pow(x, 3), axis=0), lax.lu(x)[0]

    x = A[0]
    module = tf.Module()
    module.f = tf.function(_convert(fun, enable_xla=False), autograph=False, input_signature=[tf.TensorSpec([4, 4])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
        interpreter = tf.lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    found = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    for expected in map(np.asarray, fun(x)):
        assert any(v.shape == expected.shape and np.allclose(v, expected, atol=1e-4) for v in found)


def test_gradients_pass_through_composed_functions():
    def loss(x):
        return lax.reduce_sum(lax.square(lax.lu(x)[0]), (0, 1, 2))

    f = tf.function(_convert(loss), autograph=False)
    with tf.GradientTape() as tape:
        x = tf.constant(A)
        tape.watch(x)
        value = f(x)
    np.testing.assert_allclose(tape.gradient(value, x), grad(loss)(A), rtol=2e-3, atol=1e-3)


def test_threads_make_functions_at_once():
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
