"""Round trips: `jax2tf.convert` and `jax2tf.call_tf` together, by the examples of their documentation."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import jax
import jax.experimental.jax2tf.call_tf  # importing the module must not hide the function
from jax.experimental import jax2tf

X = np.linspace(0, 1, 4, dtype=np.float32)
BOTH = pytest.mark.parametrize("native", [False, True])


def convert(fun, native, **options):
    return tf.function(jax2tf.convert(fun, native_serialization=native, **options), autograph=False)


def tf_gradient(fun_tf, x):
    v = tf.Variable(x)
    with tf.GradientTape() as tape:
        y = fun_tf(v)
    return tape.gradient(y, v).numpy()


def test_documented_example():
    def cos_tf(x):
        return tf.math.cos(x)

    def cos_tf_sin_jax(x):
        return jax.numpy.sin(jax2tf.call_tf(cos_tf)(x))

    x = np.float32(1.0)
    np.testing.assert_allclose(cos_tf_sin_jax(x), np.sin(np.cos(1)), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(cos_tf_sin_jax)(x), np.sin(np.cos(1)), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(cos_tf_sin_jax)(x), -np.cos(np.cos(1)) * np.sin(1), rtol=1e-6)


@BOTH
def test_from_tensorflow_and_back(native):
    back = convert(jax2tf.call_tf(tf.math.erf), native)
    np.testing.assert_allclose(back(X), tf.math.erf(X), rtol=1e-6)
    np.testing.assert_allclose(tf_gradient(back, X), 2 / np.sqrt(np.pi) * np.exp(-(X**2)), rtol=1e-5)


@BOTH
def test_to_tensorflow_and_back_with_a_custom_gradient(native, tmp_path):
    @jax.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * x * 3,))
    module = tf.Module()
    module.f = tf.function(
        jax2tf.convert(lambda x: square(jax.numpy.sin(x)), native_serialization=native, polymorphic_shapes=["b"]),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    loaded = tf.saved_model.load(str(tmp_path))
    f = jax2tf.call_tf(loaded.f, output_shape_dtype=jax.ShapeDtypeStruct((4,), np.float32), has_side_effects=False)
    for run in (f, jax.jit(f)):
        np.testing.assert_allclose(run(X), np.sin(X) ** 2, rtol=1e-5)
        np.testing.assert_allclose(jax.grad(lambda x: run(x).sum())(X), 3 * np.sin(X) * np.cos(X), rtol=1e-5)  # noqa: B023


@BOTH
def test_polymorphic_shapes(native):
    def total(x):
        return jax2tf.call_tf(lambda x: tf.math.reduce_sum(tf.math.sin(x)))(x)

    f = convert(total, native, polymorphic_shapes=["b, ..."])
    f = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    for x in (X, X[:2]):
        np.testing.assert_allclose(f(tf.constant(x)), np.sin(x).sum(), rtol=1e-6)
    with pytest.raises(ValueError, match="output has dynamic shape"):
        jax2tf.convert(
            lambda x: jax2tf.call_tf(lambda x: tf.boolean_mask(x, x > 0))(x),
            native_serialization=native,
            polymorphic_shapes=["b, ..."],
        )(X)
    f = convert(lambda x: jax2tf.call_tf(tf.math.sin)(x) * x.shape[0], native, polymorphic_shapes=["b, ..."])
    np.testing.assert_allclose(f(X), np.sin(X) * len(X), rtol=1e-6)
    np.testing.assert_allclose(tf_gradient(f, X), np.cos(X) * len(X), rtol=1e-6)

    def same(x):
        return jax2tf.call_tf(tf.math.sin, output_shape_dtype=jax.ShapeDtypeStruct(x.shape, np.float32))(x) + 1

    f = convert(same, native, polymorphic_shapes=["b"])
    np.testing.assert_allclose(f(X), np.sin(X) + 1, rtol=1e-6)
    np.testing.assert_allclose(tf_gradient(f, X), np.cos(X), rtol=1e-6)


def test_call_tf_graph():
    for ordered in (False, True):
        f = convert(jax2tf.call_tf(tf.sin, call_tf_graph=True, ordered=ordered), True)
        np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-6)
        (op,) = (op for op in f.get_concrete_function(X).graph.get_operations() if op.type == "XlaCallModule")
        assert len(op.get_attr("function_list")) == 1


def test_programs_for_devices_in_plain_graphs():
    """One TensorFlow device computes the results of several: placement has no effect, mapped programs are mapped."""
    mesh = jax.make_mesh((1,), ("x",))
    split, everywhere = jax.sharding.PartitionSpec("x"), jax.sharding.PartitionSpec()

    def mapped(f, out):
        return jax.shard_map(f, mesh=mesh, in_specs=split, out_specs=out)

    functions = [
        lambda x: jax.device_put(x, jax.devices()[0]) * 2,
        lambda x: jax.lax.with_sharding_constraint(x * 2, jax.sharding.NamedSharding(mesh, split)),
        mapped(lambda y: y * 2, split),
        mapped(lambda y: jax.lax.psum(y, "x"), everywhere),
        lambda x: jax.pmap(lambda y: y * 2)(x[None])[0],
    ]
    x = np.arange(4, dtype=np.float32)
    for f in functions:
        for run in (jax2tf.convert(f), tf.function(jax2tf.convert(f), autograph=False)):
            np.testing.assert_array_equal(run(x), f(x))
