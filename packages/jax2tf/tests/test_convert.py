"""`convert`: gradients, unknown dimensions, variables, saved models, TFLite, 64-bit types."""

import enum
import os
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import subprocess
import sys
import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.jax2tf import convert
from bedrax.jax2tf.flags import compile_jitted
from bedrax.lax.primitives import callbacks

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

F32 = np.float32


def _convert(fun, **options):
    return convert(fun, native_serialization=False, **options)


# ---- a small convolutional network -----------------------------------------------------------------


def _parameters():
    rng = np.random.default_rng(0)
    normal = lambda *shape: (0.3 * rng.standard_normal(shape)).astype(F32)
    return {"k1": normal(3, 3, 1, 4), "b1": normal(4), "k2": normal(3, 3, 4, 8), "w": normal(32, 10), "b": normal(10)}


def _images(n):
    return np.random.default_rng(1).standard_normal((n, 8, 8, 1)).astype(F32)


def network(p, x):
    """Two layers of convolution and pooling, and a linear one."""

    def layer(x, kernel):
        y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.reduce_window(y, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    x = jnp.maximum(layer(x, p["k1"]) + p["b1"], 0)
    x = jnp.tanh(layer(x, p["k2"]))
    x = jnp.reshape(x, (x.shape[0], -1))
    return x @ p["w"] + p["b"]


def loss(p, x):
    """Log-likelihood of the largest class, and a square."""
    y = network(p, x)
    y = y - jnp.max(y, axis=1, keepdims=True)
    return jnp.mean(jnp.log(jnp.sum(jnp.exp(y), axis=1))) + jnp.sum(y * y) / x.shape[0]


@pytest.mark.parametrize("enable_xla", [True, False])
def test_network_with_unknown_batch(enable_xla):
    p = _parameters()
    f = tf.function(
        _convert(network, polymorphic_shapes=[None, "(b, ...)"], enable_xla=enable_xla), autograph=False
    ).get_concrete_function({k: tf.TensorSpec(v.shape, v.dtype) for k, v in p.items()}, tf.TensorSpec([None, 8, 8, 1]))
    assert f.structured_outputs.shape.as_list() == [None, 10]
    for n in (1, 5):
        x = _images(n)
        np.testing.assert_allclose(f(p, tf.constant(x)), network(p, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("enable_xla", [True, False])
def test_training_step_with_unknown_batch(enable_xla):
    """TensorFlow's gradient with respect to variables is ours."""
    p = _parameters()
    variables = {k: tf.Variable(v) for k, v in p.items()}
    converted = _convert(loss, polymorphic_shapes=[None, "(b, ...)"], enable_xla=enable_xla)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 8, 8, 1], tf.float32)])
    def step(x):
        with tf.GradientTape() as tape:
            value = converted(variables, x)
        return value, tape.gradient(value, variables)

    x = _images(3)
    value, gradients = step(tf.constant(x))
    np.testing.assert_allclose(value, loss(p, x), rtol=1e-5)
    expected = grad(loss)(p, x)
    for k, g in gradients.items():
        np.testing.assert_allclose(g, expected[k], rtol=1e-4, atol=1e-5)


def test_compiled_by_tensorflows_xla():
    p, x = _parameters(), _images(2)
    f = tf.function(_convert(network), autograph=False, jit_compile=True)
    np.testing.assert_allclose(f(p, x), network(p, x), rtol=1e-5, atol=1e-5)


def test_a_bias_is_not_broadcast():
    """TFLite fuses the operations BiasAdd and Relu into the operation before them, but no broadcast vectors."""
    p = _parameters()
    f = tf.function(
        _convert(lambda x: network(p, x), polymorphic_shapes=["(b, ...)"], enable_xla=False, with_gradient=False),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 8, 8, 1], tf.float32)],
    )
    found = {op.type for op in f.get_concrete_function().graph.get_operations()}
    assert {"Conv2D", "MaxPool", "BiasAdd", "MatMul", "Relu"} <= found
    assert not {"BroadcastTo", "Select", "SelectV2", "Pad", "PadV2"} & found


def test_tflite_runs_the_network():
    p = _parameters()
    f = tf.function(
        _convert(lambda x: network(p, x), polymorphic_shapes=["(b, ...)"], enable_xla=False, with_gradient=False),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 8, 8, 1], tf.float32)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converter = tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
        interpreter = tf.lite.Interpreter(model_content=converter.convert())  # only builtin operations
    x = _images(3)
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(result["index"]), network(p, x), rtol=1e-5, atol=1e-5)


# ---- saved models ------------------------------------------------------------------------------------

_LOADER = PROGRAMS / "load_saved_model.py"


def test_a_saved_model_runs_without_our_packages(tmp_path):
    """A process that cannot import our packages runs the model, and differentiates it."""
    p, x = _parameters(), _images(3)
    variables = {k: tf.Variable(v) for k, v in p.items()}
    converted = _convert(network, polymorphic_shapes=[None, "(b, ...)"])
    model = tf.Module()
    model.variables_of_model = variables
    model.f = tf.function(
        lambda x: converted(variables, x), autograph=False, input_signature=[tf.TensorSpec([None, 8, 8, 1], tf.float32)]
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(model, str(tmp_path / "model"), options=options)
    gradient = grad(lambda x: jnp.sum(network(p, x) ** 2))(x)
    np.savez(tmp_path / "data.npz", x=x, y=np.asarray(network(p, x)), g=np.asarray(gradient))
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, _LOADER, str(tmp_path / "model"), str(tmp_path / "data.npz")],
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0 and "same" in done.stdout, done.stderr[-2000:]


# ---- gradients ---------------------------------------------------------------------------------------


def test_second_derivative():
    f = _convert(lambda x: jnp.sin(x) ** 3)
    x = tf.Variable(F32(0.7))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x)
        first = inner.gradient(y, x)
    expected = grad(grad(lambda x: jnp.sin(x) ** 3))(F32(0.7))
    np.testing.assert_allclose(outer.gradient(first, x), expected, rtol=1e-5)


def test_gradients_of_unused_and_integer_arguments():
    """Unused floats have zero gradients; integers have none, or zeros with that option."""

    def fn(x0, x1, x2, x3):
        return x0 * 0.0 + x2 * 2.0

    xs = [tf.Variable(F32(v)) for v in (10, 11, 12)] + [tf.Variable(13)]
    with tf.GradientTape(persistent=True) as tape:
        y = _convert(fn)(*xs)
    found = tape.gradient(y, xs)
    assert [None if g is None else float(g) for g in found] == [0.0, 0.0, 2.0, None]
    zeros = tape.gradient(y, xs, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert [float(g) for g in zeros] == [0.0, 0.0, 2.0, 0.0] and zeros[3].dtype == tf.int32


def test_float0_is_int32():
    got = _convert(grad(lambda x: x * F32(2), allow_int=True))(np.int16(2))
    assert got.dtype == tf.int32 and got.numpy() == 0


def test_integer_and_float_results():
    x = tf.Variable(np.arange(3, dtype=F32))
    with tf.GradientTape() as tape:
        largest, where = _convert(lambda x: (jnp.sum(x * x), jnp.argmax(x)))(x)
    assert where.dtype == tf.int32
    np.testing.assert_allclose(tape.gradient(largest, x), [0, 2, 4])


@pytest.mark.parametrize("native", [True, False])
def test_complex_gradients_next_to_functions_of_tensorflow(native):
    """TensorFlow's gradient is the conjugate of ours, and a converted function passes its own. See the README."""
    factor = np.complex64(2 - 1j)
    ours = convert(lambda z: z * z * factor, native_serialization=native)
    conjugated = tf.custom_gradient(lambda x: (tf.identity(x), tf.math.conj))
    z = tf.constant(np.array([3 + 4j, 1 - 2j, -2], np.complex64))

    def gradient(f):
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = f(z)
        return tape.gradient(y, z)

    of_tensorflow = gradient(lambda z: tf.abs(z * z * factor))
    whole = convert(lambda z: jnp.abs(z * z * factor), native_serialization=native)
    np.testing.assert_allclose(gradient(whole), tf.math.conj(of_tensorflow), rtol=1e-5)
    np.testing.assert_allclose(gradient(lambda z: tf.abs(conjugated(ours(conjugated(z))))), of_tensorflow, rtol=1e-5)


def test_without_gradient():
    x = tf.Variable(F32(1))
    with tf.GradientTape() as tape:
        y = _convert(jnp.sin, with_gradient=False)(x)
    with pytest.raises(LookupError, match="does not support gradients"):
        tape.gradient(y, x)


CONVOLUTIONS = {
    "plain": dict(padding=[(1, 0), (0, 2)]),
    "same": dict(padding="SAME", window_strides=(2, 3)),
    "strided": dict(padding=[(0, 1), (2, 0)], window_strides=(2, 3)),
    "dilated_window": dict(padding=[(2, 2), (1, 0)], rhs_dilation=(2, 1)),
    "dilated_operand": dict(padding=[(1, 2), (3, 0)], lhs_dilation=(2, 3)),
    "all_dilated": dict(padding=[(3, 3), (0, -1)], lhs_dilation=(1, 2), rhs_dilation=(2, 1), window_strides=(2, 1)),
    "grouped": dict(padding="VALID", feature_group_count=2),
    "depthwise": dict(padding="SAME", feature_group_count=4, window_strides=(2, 2)),
    "depthwise_uneven": dict(padding="SAME", feature_group_count=4, window_strides=(2, 1), rhs_dilation=(1, 2)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(name):
    """With respect to both operands, for any batch: convolutions with dilated operands and with exchanged axes."""
    options = {"window_strides": (1, 1), **CONVOLUTIONS[name]}
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 7, 8, 4)).astype(F32)
    kernel = rng.standard_normal((3, 2, 4 // options.get("feature_group_count", 1), 8)).astype(F32)

    def f(x, kernel):
        y = lax.conv_general_dilated(x, kernel, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)
        return jnp.sum(jnp.sin(y))

    gradients = grad(f, argnums=(0, 1))
    converted = _convert(gradients, polymorphic_shapes=["(b, ...)", None], enable_xla=False)
    got = tf.function(
        converted, autograph=False, input_signature=[tf.TensorSpec([None, 7, 8, 4]), tf.TensorSpec(kernel.shape)]
    )(x, kernel)
    for g, want in zip(got, gradients(x, kernel), strict=True):
        np.testing.assert_allclose(g, want, rtol=1e-4, atol=1e-4)


NAN = {
    "max": lambda x: jnp.maximum(x, x[::-1]),
    "min_const": lambda x: jnp.minimum(x, 0),
    "clamp": lambda x: lax.clamp(F32(0), x, F32(1)),
    "reduce_max": lambda x: jnp.max(x, axis=0),
    "argmax": lambda x: jnp.argmax(x, axis=0),
    "cummin": lambda x: lax.cummin(x, axis=0),
    "window": lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "SAME"),
    "sort": lambda x: jnp.sort(x, axis=0),
    "scatter_max": lambda x: jnp.zeros((2, 3)).at[np.array([0, 1, 0, 0])].max(x),
    "to_int": lambda x: lax.convert_element_type(x * F32(1e20), np.int32),
}


# `Maximum`, `Minimum`, `Max` and `Min`, as TensorFlow's XLA computes them, pass over nan in the second operand.
_PASSED_OVER_BY_XLA = ("max", "reduce_max", "cummin", "window")


@pytest.mark.parametrize(
    ("name", "compiled"), [(n, c) for n in NAN for c in (True, False) if not (c and n in _PASSED_OVER_BY_XLA)]
)
def test_nan_is_not_lost(name, compiled):
    """TensorFlow passes over nan in some comparisons; converted functions do not, beyond what its `Maximum` does."""
    x = np.array([[1, np.nan, -2], [np.nan, 0.5, 3], [0, 0, np.nan], [-1, 2, np.inf]], F32)
    got = tf.function(_convert(NAN[name]), autograph=False, jit_compile=compiled)(x)
    np.testing.assert_array_equal(got, NAN[name](jnp.asarray(x)))


# ---- types -------------------------------------------------------------------------------------------


def test_64_bits_follow_our_flag():
    f = _convert(jnp.sin)
    assert f(3.14).dtype == tf.float32
    assert f(np.float64(3.14)).dtype == tf.float32
    assert tf.function(f, autograph=False)(tf.Variable(3.14, dtype=tf.float64)).dtype == tf.float32
    with config.enable_x64(True):
        assert f(3.14).dtype == tf.float64
        assert f(tf.Variable(3.14, dtype=tf.float64)).dtype == tf.float64
        assert f(tf.Variable(3.14)).dtype == tf.float32


def test_trees_in_and_out():
    got = _convert(lambda d, *, k: {"a": d["x"][0] + k, "b": (d["x"][1],)})({"x": [1.0, 2.0]}, k=3.0)
    assert float(got["a"]) == 4.0 and float(got["b"][0]) == 2.0


def test_keys_are_moved_about():
    """Arrays of keys, whose elements are several words each, through operations that move elements."""

    def draw(seed):
        keys = random.split(random.key(seed), 3)[::-1]
        return random.uniform(jnp.stack([keys[1], keys[0]])[0], (4,))

    expected = draw(np.uint32(5))
    got = tf.function(_convert(draw, enable_xla=False), autograph=False)(np.uint32(5))
    np.testing.assert_array_equal(got, expected)


def test_nested_jit_and_loops():
    def f(x):
        def body(carry, y):
            return jit(jnp.cos)(carry) + y, carry

        return lax.scan(body, x[0], x)

    x = np.linspace(0, 1, 5, dtype=F32)
    carry, ys = tf.function(
        _convert(f, polymorphic_shapes=["(n,)"]), autograph=False, input_signature=[tf.TensorSpec([None], tf.float32)]
    )(x)
    want = f(x)
    np.testing.assert_allclose(carry, want[0], rtol=1e-6)
    np.testing.assert_allclose(ys, want[1], rtol=1e-6)


# ---- dimensions that are not known while converting ---------------------------------------------------


def _first_rows(x):
    return lax.dynamic_slice(x, (1, 0), (2, x.shape[1]))


def _key():
    return random.wrap_key_data(np.array([1, 2], np.uint32))


def _convolve_each(x, kernel):
    return lax.conv_general_dilated(x[None, None], kernel[None, None], (1,), "VALID")[0, 0]


def _convolve(x):
    kernel = np.arange(3, dtype=F32).reshape(3, 1, 1)
    y = lax.conv_general_dilated(x[:, :, None], kernel, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    return y[..., 0]


POLYMORPHIC = {
    "mean": lambda x: jnp.mean(x, axis=0),
    "size": lambda x: jnp.sum(x) / (x.shape[0] * x.shape[1]),
    "flatten": lambda x: jnp.reshape(x, (-1,)),
    "transpose_flatten": lambda x: jnp.reshape(x.T, (x.shape[0] * x.shape[1],)),
    "outer": lambda x: x[:, :, None] * jnp.ones((2,)),
    "broadcast": lambda x: jnp.broadcast_to(x[0], x.shape) + jnp.arange(x.shape[1], dtype=F32),
    "concatenate": lambda x: jnp.concatenate([x, x[:1], 2 * x]),
    "pad": lambda x: lax.pad(x, F32(0), ((1, 2, 1), (-1, 0, 0))),
    "matmul": lambda x: x @ x.T,
    "batched": lambda x: jnp.einsum("ij,ik->ijk", x, x),
    "sort": lambda x: jnp.sort(x, axis=0),
    "argmax": lambda x: jnp.argmax(x, axis=1),
    "cumsum": lambda x: jnp.cumsum(x, axis=0),
    "cummax": lambda x: lax.cummax(x, axis=0),
    "softmax": lambda x: jnp.exp(x - jnp.max(x, 1, keepdims=True)) / jnp.sum(jnp.exp(x), 1, keepdims=True),
    "gather": lambda x: x[jnp.array([1, 0]), :],
    "take_each": lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1),
    "scatter": lambda x: x.at[1, :].set(7.0).at[0].add(x[1]),
    "reverse": lambda x: x[::-1, ::2],
    "dynamic_slice": _first_rows,
    "dynamic_update": lambda x: lax.dynamic_update_slice(x, x[:1], (1, 0)),
    "window": lambda x: lax.reduce_window(x, F32(0), lax.add, (2, 2), (1, 2), "VALID"),
    "long_window": lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 9), (1, 1), "SAME"),
    "convolution": _convolve,
    "tile": lambda x: jnp.tile(x, (2, 1)),
    "reduce_any_order": lambda x: lax.reduce(x, F32(1), lambda a, b: a * b + F32(0), (0,)),
    "where": lambda x: jnp.where(x > 0, x, -x),
    "random": lambda x: lax.rng_bit_generator(jnp.arange(4, dtype=np.uint32), x.shape)[1],
    "symbolic_steps": lambda x: x[:: x.shape[0] - 1, :: -x.shape[1]],
    "symbolic_bounds": lambda x: x[1 : x.shape[0] : 2, -x.shape[1] :],
    "symbolic_range": lambda x: jnp.arange(0, x.shape[0] * x.shape[1], x.shape[1]),
    "approx_max_k": lambda x: lax.approx_max_k(x, x.shape[1] - 1)[0],
    "whole_window": lambda x: lax.reduce_window(x, F32(0), lax.add, (x.shape[0], 1), (1, 1), "VALID"),
    "permutation": lambda x: random.permutation(_key(), x, axis=1),
    "choice": lambda x: random.choice(_key(), x.shape[0], (5,)),
    "pinv": lambda x: jnp.linalg.pinv(x),
    "svd": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "convolution_each": lambda x: vmap(_convolve_each)(x, x[:, :3]),
    "no_steps": lambda x: lax.scan(lambda c, r: (c, c + r), x[0], x[3:])[1],
    "grad_max_pool": grad(lambda x: jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2)),
    "grad_convolution": grad(lambda x: jnp.sum(_convolve(x) ** 2)),
}


@pytest.mark.parametrize("name", POLYMORPHIC)
def test_polymorphic_shapes(name):
    """One graph for all sizes of both axes."""
    fun = POLYMORPHIC[name]
    f = tf.function(
        _convert(fun, polymorphic_shapes=["(a, b)"], polymorphic_constraints=("a >= 3", "b >= 4")),
        autograph=False,
        input_signature=[tf.TensorSpec([None, None], tf.float32)],
    )
    for shape in ((3, 4), (4, 7)):
        x = np.random.default_rng(0).standard_normal(shape).astype(F32)
        np.testing.assert_allclose(f(x), fun(jnp.asarray(x)), rtol=1e-5, atol=1e-5)


def test_jitted_functions_are_compiled_on_request():
    f = convert(jit(lambda x: jnp.sin(x) * 2), native_serialization=False)
    x = tf.constant([1.0, 2.0])

    def compiled_functions(g):
        library = g.get_concrete_function(x).graph.as_graph_def().library.function
        return [d for d in library if d.attr["_XlaMustCompile"].b]

    outer = lambda: tf.function(f, autograph=False)
    assert not compiled_functions(outer())
    with compile_jitted(True):
        g = outer()
        assert len(compiled_functions(g)) == 1
        assert not compiled_functions(tf.function(_convert(lambda x: jnp.sin(x) * 2), autograph=False))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        np.testing.assert_allclose(y, 2 * np.sin(x), rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x), 2 * np.cos(x), rtol=1e-6)
        np.testing.assert_allclose(f(x), 2 * np.sin(x), rtol=1e-6)


def test_a_number_of_a_subclass_of_int_is_a_number():
    class Level(enum.IntEnum):
        HIGH = 3

    found = _convert(lambda x: x + 1)(Level.HIGH)
    assert found.dtype == tf.int32 and int(found) == 4


@pytest.mark.parametrize("compiled", [False, True])
def test_the_cube_root_of_a_subnormal_number_is_finite(compiled):
    x = np.array([1e-40, -1e-40, 0, 1e-38, 8], F32)
    found = tf.function(_convert(lax.cbrt), autograph=False, jit_compile=compiled)(x)
    np.testing.assert_allclose(found, np.cbrt(x), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_erf_of_infinite_float64_is_one(compiled):
    x = np.array([np.inf, -np.inf, 30, 5, 0.5, np.nan, 1, 2])
    with config.enable_x64(True):
        found = tf.function(_convert(lax.erf), autograph=False, jit_compile=compiled)(x)
        np.testing.assert_allclose(found, lax.erf(x), rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_inverse_of_erf_in_float64_is_precise(compiled):
    x = np.array([1e-300, -1e-10, 0.1, 0.4999, 0.5, -0.6, 0.9, 0.999999, -1 + 1e-15, 1, -1, 0, 1.5, np.nan])
    with config.enable_x64(True):
        found = tf.function(_convert(lax.erf_inv), autograph=False, jit_compile=compiled)(x)
        np.testing.assert_allclose(found, lax.erf_inv(x), rtol=1e-12)


UNSIGNED = {
    "sort": lambda x: lax.sort(x),
    "cumsum": lambda x: lax.cumsum(x, reverse=True),
    "cumprod": lambda x: lax.cumprod(x),
}


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers_are_compiled(name, dtype):
    """TensorFlow's XLA has no kernels for some of these dtypes."""
    x = np.array([3, np.iinfo(dtype).max, 7, 2], dtype)
    with config.enable_x64(True):
        found = tf.function(_convert(UNSIGNED[name]), autograph=False, jit_compile=True)(x)
        np.testing.assert_array_equal(found, UNSIGNED[name](x))


@pytest.mark.parametrize("name", ["empty update", "update"])
def test_an_update_of_unknown_size_may_be_empty(name):
    fun = lambda x: lax.dynamic_update_slice(x, 2 * x[1:, 1:], (1, 0))
    f = tf.function(_convert(fun, polymorphic_shapes=["(a, b)"]), autograph=False)
    f = f.get_concrete_function(tf.TensorSpec([None, None]))
    x = np.ones((1, 3) if name == "empty update" else (3, 2), F32)
    np.testing.assert_array_equal(f(tf.constant(x)), fun(jnp.asarray(x)))


NARROW = {
    "scan": lambda x: lax.scan(lambda c, v: (v, c), x[0], x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, lax.rev(c[1], (0,))), (0, x)),
    "cond": lambda x: lax.cond(lax.convert_element_type(x[0], bool), lambda v: lax.rev(v, (0,)), lambda v: v, x),
    "product": lambda x: lax.dot_general(lax.reshape(x, (1, 3, 1)), x, (((1,), (0,)), ((), ()))),
    "convolution": lambda x: lax.conv_general_dilated(
        lax.reshape(x, (1, 1, 3)), lax.reshape(x[:2], (1, 1, 2)), (1,), "VALID"
    ),
    "switch": lambda x: lax.switch(1, [lambda v: v, lambda v: lax.rev(v, (0,)), lambda v: v], x),
}


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e4m3fn"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_dtypes(name, dtype):
    """TensorFlow has no kernels that pass them to a branch or a step of a graph, or transpose them."""
    x = np.array([1, 0, 3], F32).astype(jnp.dtype(dtype))
    found = tf.function(_convert(NARROW[name]), autograph=False)(tf.constant(x))
    for y, want in zip(tf.nest.flatten(found), tf.nest.flatten(NARROW[name](jnp.asarray(x))), strict=True):
        np.testing.assert_array_equal(y.numpy().astype(F32), np.asarray(want).astype(F32))


@pytest.mark.parametrize("in_graph", [False, True])
def test_a_branch_without_results_has_its_effects(in_graph, capfd):
    def fun(x):
        lax.cond(x > 0, lambda: callbacks.debug_print("positive: {}", x), lambda: None)
        return x

    f = tf.function(_convert(fun), autograph=False) if in_graph else _convert(fun)
    f(tf.constant(3.0)), f(tf.constant(-4.0))
    assert capfd.readouterr().out == "positive: 3\n"


COMPLEX = {
    "log": lax.log,
    "log1p": lax.log1p,
    "expm1": lax.expm1,
    "sign": lax.sign,
    "quotient": lambda z: lax.div(z, lax.rev(z, (0,))),
    "inverse": lambda z: 1 / z,
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_with_extreme_parts(name, compiled):
    """TensorFlow's kernels give NaN for some of them, and lose small parts."""
    parts = [0, 1, -1, 0.25, 1e-12, -1e-12, 1e12, -1e12, np.inf, -np.inf]
    z = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    found = tf.function(_convert(COMPLEX[name]), autograph=False, jit_compile=compiled)(z).numpy()
    want = np.asarray(jit(COMPLEX[name])(z))
    for actual, expected in ((found.real, want.real), (found.imag, want.imag)):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-30)
