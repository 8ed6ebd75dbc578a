"""call_tf outside of traced programs: TensorFlow's eager mode, arrays across the border."""

import warnings

import ml_dtypes
import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import pytree, random
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.call_tf import UnspecifiedOutputShapeDtype, call_tf
from bedrax.core import config
from bedrax.core.avals import ShapeDtypeStruct

ONE = np.float32(1)


def spec(shape, dtype=np.float32):
    return ShapeDtypeStruct(shape, dtype)


def test_trees_go_in_and_out():
    def fun_tf(d, *, k):
        assert tf.executing_eagerly()
        assert isinstance(d["x"], tf.Tensor)
        return {"sum": d["x"] + k, "rest": [d["y"][0], None]}

    out = call_tf(fun_tf)({"x": 2.0, "y": (np.arange(3, dtype=np.int32),)}, k=jnp.ones(2))
    np.testing.assert_array_equal(out["sum"], [3.0, 3.0])
    np.testing.assert_array_equal(out["rest"][0], [0, 1, 2])
    assert out["rest"][1] is None
    assert isinstance(out["sum"], type(jnp.ones(2)))


@pytest.mark.parametrize(
    "dtype",
    [bool, np.int8, np.uint8, np.int16, np.uint32, np.float16, ml_dtypes.bfloat16, np.complex64, "int4", "float8_e5m2"],
)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)])
def test_dtypes_and_shapes(dtype, shape):
    dtype = np.dtype(getattr(ml_dtypes, dtype) if isinstance(dtype, str) else dtype)
    x = np.ones(shape, dtype)
    for given in (x, jnp.asarray(x)):
        out = call_tf(lambda x: x)(given)
        assert out.dtype == dtype and out.shape == shape
        np.testing.assert_array_equal(np.asarray(out), x)


def test_results_take_canonical_dtypes():
    wide = call_tf(lambda x: (tf.cast(x, tf.float64), tf.constant(1, tf.int64), 3.5, np.ones(2)))
    assert [y.dtype.name for y in wide(ONE)] == ["float32", "int32", "float32", "float32"]
    with config.enable_x64(True):
        assert [y.dtype.name for y in wide(ONE)] == ["float64", "int64", "float32", "float64"]


def test_memory_is_shared_but_never_that_of_numpy():
    ours = jnp.arange(4096.0)
    same = call_tf(lambda x: x)(ours)
    assert same.unsafe_buffer_pointer() == ours.unsafe_buffer_pointer()
    theirs = np.ones(5000, np.float32)
    theirs = theirs[-theirs.ctypes.data % 64 // 4 :][:4096]  # aligned, so that TensorFlow reads it in place
    same, row = call_tf(lambda x: (x, x[8:24]))(theirs)
    theirs[:] = 7
    assert np.all(same == 1) and np.all(row == 1)


@pytest.mark.parametrize("offset", range(0, 64, 4))
def test_memory_of_any_alignment(offset):
    buffer = np.ones(1064, np.uint8)
    x = np.frombuffer(buffer.data, np.float32, 250, offset=offset)
    np.testing.assert_array_equal(call_tf(tf.negative)(x), -x)
    np.testing.assert_array_equal(call_tf(tf.negative)(jnp.asarray(x)), -x)


def test_strided_and_read_only_arrays():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x.T, x[::2], x[:, ::-1], frozen):
        np.testing.assert_array_equal(call_tf(tf.identity)(given), given)


def test_tensors_are_arguments_too():
    assert call_tf(tf.negative)(tf.constant(2.0)) == -2
    assert call_tf(tf.negative)(tf.Variable(3.0)) == -3


def test_keys_are_refused():
    with pytest.raises(TypeError, match="key_data"):
        call_tf(tf.identity)(random.key(0))


def test_arguments_and_results_that_are_no_arrays_are_refused():
    with pytest.raises(TypeError, match="not an array"):
        call_tf(tf.identity)("abc")
    with pytest.raises(TypeError, match="TensorFlow function"):
        call_tf(3)
    for wrong in (tf.strings.as_string, lambda x: "abc", lambda x: object()):
        with pytest.raises(ValueError, match="not convertible"):
            call_tf(wrong)(ONE)


def test_functions_that_xla_cannot_compile_run_eagerly():
    """The documentation states that a function that cannot be compiled runs op by op."""
    greet = call_tf(lambda x: tf.strings.length(tf.strings.format("Hello {}!", [x])))
    assert greet(np.float32(42.0)) == len("Hello 42!")
    x = np.array([1, 2], np.int32)
    np.testing.assert_array_equal(call_tf(lambda x: x[x[0] : 5])(x), [2])
    keep = call_tf(lambda x: tf.cond(x[0] >= 0, lambda: x, lambda: x[1:]))
    assert keep(x).shape == (2,) and keep(-x).shape == (1,)


def test_traces_of_tensorflow_functions():
    """A `tf.function` is traced once for types, as by itself; structures, variables and later changes are seen."""
    traced, holder = [], tf.Module()

    @tf.function(autograph=False)
    def fun_tf(d, *, k):
        traced.append(d["x"].shape)
        if not hasattr(holder, "v"):
            holder.v = tf.Variable(1.0)
        return {"sum": d["x"] + k * holder.v, "rest": [d["y"][0], None]}

    f = call_tf(fun_tf)
    call = lambda n: f({"x": jnp.arange(n, dtype=np.float32), "y": (jnp.ones(n, np.int32),)}, k=jnp.ones(()))
    for factor in (1, 3):
        for n in (2, 3):
            for _ in range(3):
                out = call(n)
                np.testing.assert_array_equal(out["sum"], np.arange(n) + factor)
                assert out["rest"][0].dtype == np.int32 and out["rest"][1] is None
        seen = len(traced)  # more than twice: TensorFlow traces again where variables are made
        holder.v.assign(3.0)
    assert len(traced) == seen
    tf.config.run_functions_eagerly(True)
    try:
        call(2), call(2)
    finally:
        tf.config.run_functions_eagerly(False)
    assert len(traced) == seen + 2


def test_arguments_of_registered_classes_are_no_constants_of_a_trace():
    """TensorFlow treats an object of a class that is registered with us only as a constant."""

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
    f = call_tf(tf.function(lambda p: p.a - p.b, autograph=False))
    for a in (1.0, 2.0, 3.0):
        assert float(f(Pair(jnp.asarray(a), jnp.asarray(5.0)))) == a - 5


def test_variables_are_read_and_written():
    v = tf.Variable(1.0)

    def impure(x):
        v.assign(11.0)
        return x + v

    assert call_tf(impure)(np.float32(2)) == 13
    assert v.numpy() == 11
    seen = call_tf(lambda x: v)(ONE)
    v.assign_add(1.0)
    assert seen == 11


@pytest.mark.parametrize(
    "declared,phrase",
    [
        (spec((), np.int32), r"float32\[\] vs. expected int32\[\]"),
        (spec((2,)), r"float32\[\] vs. expected float32\[2\]"),
        ((spec(()), spec(())), "pytree"),
        (None, "pytree"),
    ],
)
def test_results_must_be_as_declared(declared, phrase):
    with pytest.raises(ValueError, match=phrase):
        call_tf(tf.sin, output_shape_dtype=declared)(ONE)


def test_declarations():
    assert call_tf(tf.sin, output_shape_dtype=UnspecifiedOutputShapeDtype())(ONE) == np.float32(np.sin(1))
    assert call_tf(lambda x: None, output_shape_dtype=None)(ONE) is None
    assert call_tf(lambda x: (), output_shape_dtype=())(ONE) == ()
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        call_tf(tf.sin, output_shape_dtype="float32")


# ---- derivatives


def test_gradient():
    f = call_tf(tf.sin)
    x = np.float32(0.3)
    np.testing.assert_allclose(grad(f)(x), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(grad(grad(f))(x), -np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(grad(grad(grad(f)))(x), -np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(
        grad(lambda x: jnp.sin(f(jnp.cos(x))))(x), -np.cos(np.sin(np.cos(x))) * np.cos(np.cos(x)) * np.sin(x), rtol=1e-5
    )


def test_gradients_of_several_arguments():
    """Integer arguments have none, unused ones have zeros, non-differentiable results do not matter."""

    def fun_tf(x, n, unused, y):
        return x * tf.cast(n, tf.float32), x > 0, n + 1, tf.reduce_sum(tf.gather(y, [0, 0, 2]))

    def total(x, n, unused, y):
        a, _, _, b = call_tf(fun_tf)(x, n, unused, y)
        return a + 2 * b

    args = ONE, np.int32(3), np.ones(2, np.float32), np.ones(4, np.float32)
    gx, gn, gu, gy = grad(total, argnums=(0, 1, 2, 3), allow_int=True)(*args)
    assert gx == 3 and gn.dtype.names == ("float0",)
    np.testing.assert_array_equal(gu, [0, 0])
    np.testing.assert_array_equal(gy, [4, 0, 2, 0])


def test_gradient_where_nothing_is_connected():
    assert grad(lambda x: x + call_tf(lambda x: tf.constant(2.0))(x))(ONE) == 1
    assert grad(lambda x: x + call_tf(lambda x: tf.cast(x, tf.int32))(x))(ONE) == 1
    np.testing.assert_array_equal(grad(lambda x: call_tf(lambda x: tf.stop_gradient(x))(x))(ONE), 0)


def test_custom_gradients_are_respected():
    strange = tf.custom_gradient(lambda x: (x * x, lambda dy: dy * 10))
    assert grad(call_tf(strange))(ONE) == 10


def test_gradient_of_a_function_that_xla_cannot_compile():
    def fun_tf(x):
        return x * tf.cast(tf.strings.length(tf.strings.as_string(x)), tf.float32)

    assert grad(call_tf(fun_tf))(ONE) == len("1.000000")


def test_gradient_while_tensorflow_traces_a_graph():
    @tf.function(autograph=False)
    def outer():
        return tf.constant(np.asarray(grad(call_tf(tf.sin))(np.float32(0))))

    assert outer().numpy() == 1


# ---- vmap


def test_vmap():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    shapes = []

    def fun_tf(x, y):
        shapes.append((x.shape, y.shape))
        return tf.reduce_sum(x) * y

    pure = call_tf(fun_tf, has_side_effects=False)
    out = vmap(pure, in_axes=(1, None), out_axes=1)(x, np.array([1, 2], np.float32))
    np.testing.assert_allclose(out, np.outer([1, 2], x.sum(0)))
    assert {(tuple(a), tuple(b)) for a, b in shapes} == {((2,), (2,))}
    np.testing.assert_allclose(vmap(grad(call_tf(tf.sin, has_side_effects=False)))(x[0]), np.cos(x[0]), rtol=1e-6)
