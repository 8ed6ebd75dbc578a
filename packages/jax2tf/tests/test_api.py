"""The names other than `convert`, immediate errors, and arguments that are not plain containers of tensors."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax, pytree, random
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.call_tf import call_tf
from bedrax.core import config
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.jax2tf import (
    DisabledSafetyCheck,
    convert,
    dtype_of_val,
    eval_polymorphic_shape,
    get_thread_local_state_call_tf_concrete_function_list,
    inside_call_tf,
    preprocess_arg_tf,
    split_to_logical_devices,
)
from bedrax.xla_backend import jit

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("thing", [3, None, "sin", X, [np.sin]])
def test_only_functions(thing):
    with pytest.raises(TypeError, match="expects a function"):
        convert(thing)
    with pytest.raises(TypeError, match="expects a function"):
        eval_polymorphic_shape(thing)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("transformed", [jit, grad, vmap, lambda f: lambda x: lax.scan(lambda c, y: (f(c), y), x, X)])
def test_not_inside_transformations(transformed, native):
    f = convert(lambda x: jnp.sum(x), native_serialization=native)
    with pytest.raises(ValueError, match="must be used outside all JAX transformations"):
        transformed(f)(X)
    constant = convert(lambda x: x + 1, native_serialization=native)
    with pytest.raises(ValueError, match="must be used outside all JAX transformations"):
        jit(lambda y: y + np.asarray(constant(1.0)))(X)


def test_inside_call_tf():
    f = convert(lambda x: jnp.sin(x) * 2)
    np.testing.assert_allclose(jit(call_tf(lambda x: f(x) + f(1.0)))(X), 2 * np.sin(X) + 2 * np.sin(1), rtol=1e-5)


def test_inside_call_tf_is_true_only_in_a_called_function():
    seen = []

    def fun_tf(x):
        seen.append((inside_call_tf(), get_thread_local_state_call_tf_concrete_function_list() is not None))
        return x

    call_tf(fun_tf)(X)
    assert seen == [(True, False)] and not inside_call_tf()
    convert(call_tf(fun_tf, call_tf_graph=True), native_serialization=True)(X)
    assert seen[-1][0] and get_thread_local_state_call_tf_concrete_function_list() is None


def test_an_argument_as_a_tensor():
    assert preprocess_arg_tf(0, X).dtype == tf.float32 and preprocess_arg_tf(1, 1).dtype == tf.int32
    variable = tf.Variable(1.0)
    assert preprocess_arg_tf(0, variable) is variable
    for other in ("text", b"bytes", np.array(["a"]), np.datetime64("2020"), object(), tf.constant("text")):
        with pytest.raises(TypeError, match="argument 2 of a converted function"):
            preprocess_arg_tf(2, other)
        with pytest.raises(TypeError):
            convert(lambda x: x)(other)
    with pytest.raises(TypeError, match="^argument 2 of a converted function: .*takes tensors"):
        preprocess_arg_tf(2, tf.TensorSpec([1]))


@pytest.mark.parametrize("x64", [False, True])
def test_dtype_of_val(x64):
    with config.enable_x64(x64):
        wide = tf.float64 if x64 else tf.float32
        assert dtype_of_val(3.14) == wide
        assert dtype_of_val(np.float64(3)) == wide
        assert dtype_of_val(np.ones(2, np.int64)) == (tf.int64 if x64 else tf.int32)
        assert dtype_of_val(tf.TensorSpec([None], tf.float64)) == wide
        assert dtype_of_val(tf.Variable(1.0, dtype=tf.float64)) == wide
        assert dtype_of_val(True) == tf.bool
        assert dtype_of_val(random.key(0)) == tf.uint32
        assert convert(jnp.sin)(tf.Variable(3.14, dtype=dtype_of_val(3.14))).dtype == wide
    with pytest.raises(TypeError):
        dtype_of_val(tf.constant("text"))


def test_eval_polymorphic_shape():
    a, b = ShapeDtypeStruct((4, 5), np.float32), tf.TensorSpec([5, None], tf.float32)
    types, shapes = eval_polymorphic_shape(
        lambda x, y: {"r": x @ y, "n": jnp.sum(x)}, polymorphic_shapes=["a, b", "b, c"]
    )(a, b)
    assert shapes == {"r": "(a, c)", "n": "()"}
    assert str(types["r"].shape) == "(a, c)" and types["r"].dtype == np.float32
    again, shapes = eval_polymorphic_shape(lambda x: x.T.reshape(-1), polymorphic_shapes=[shapes["r"]])(types["r"])
    assert shapes in ("(a*c,)", "(a*c)", "(c*a)") and again.dtype == np.float32
    assert eval_polymorphic_shape(jnp.sin)(X)[1] == "(2, 3)"


def test_split_to_logical_devices():
    @tf.function(autograph=False)
    def f(x):
        return split_to_logical_devices(x, [2, 1]), split_to_logical_devices(x, None)

    ops = f.get_concrete_function(tf.TensorSpec([4, 3], tf.float32)).graph.get_operations()
    marked = [op for op in ops if op.type == "XlaSharding"]
    assert len(marked) == 2 and marked[0].get_attr("sharding") != marked[1].get_attr("sharding")
    np.testing.assert_array_equal(f(tf.ones([4, 3]))[0], np.ones((4, 3)))  # one device: nothing happens
    with pytest.raises(ValueError, match="number of parts of each axis"):
        split_to_logical_devices(tf.ones([4, 3]), [2])


def test_checks():
    assert str(DisabledSafetyCheck.shape_assertions()) == "shape_assertions"
    assert DisabledSafetyCheck.custom_call("t").is_custom_call() == "t"
    with pytest.raises(ValueError, match="native_serialization_disabled_checks"):
        convert(
            jnp.sin, native_serialization=False, native_serialization_disabled_checks=[DisabledSafetyCheck.platform()]
        )


@pytest.mark.parametrize("native", [False, True])
def test_keys_are_their_words(native):
    f = convert(lambda k: random.uniform(k, (3,)), native_serialization=native)
    key = random.key(7)
    for run in (f, tf.function(f, autograph=False), tf.function(tf.function(f, autograph=False), autograph=False)):
        np.testing.assert_array_equal(run(key), random.uniform(key, (3,)))
    words = convert(lambda k: random.split(k), native_serialization=native)(key)
    np.testing.assert_array_equal(words, random.key_data(random.split(key)))


def test_keys_and_other_arguments():
    def f(state, x):
        return vmap(lambda k: random.normal(k))(state["keys"]) * x

    keys, x = random.split(random.key(1), 2), tf.constant([2.0, 3.0])
    g = tf.function(convert(f, polymorphic_shapes=["(b)", "(b)"]), autograph=False)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = g({"keys": keys}, x)
    np.testing.assert_allclose(y, f({"keys": keys}, x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x), vmap(lambda k: random.normal(k))(keys), rtol=1e-6)
    traces = g.experimental_get_tracing_count()
    g({"keys": random.split(random.key(2), 2)}, x)
    assert g.experimental_get_tracing_count() == traces


@pytree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    y: object
    name: str = dataclasses.field(default="p", metadata={"static": True})


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))


@pytest.mark.parametrize("make", [Point, Pair])
@pytest.mark.parametrize("compiled", [False, True])
def test_registered_containers(make, compiled):
    def f(p):
        a, b = pytree.tree_leaves(p)
        return type(p)(a * 2, a * b)

    converted = convert(f)
    g = tf.function(lambda p: pytree.tree_leaves(converted(p)), autograph=False, jit_compile=compiled)
    for a in (tf.constant([1.0, 2.0]), tf.constant([5.0, 2.0])):
        with tf.GradientTape() as tape:
            tape.watch(a)
            twice, product = g(make(a, tf.constant(3.0)))
        np.testing.assert_allclose(twice, 2 * a)
        np.testing.assert_allclose(product, 3 * a)
        np.testing.assert_allclose(tape.gradient(product, a), [3, 3])
        with tf.GradientTape() as tape:
            given = make(a, tf.constant(3.0))
            tape.watch(pytree.tree_leaves(given))
            product = g(given)[1]
        found = tape.gradient(product, given)
        assert type(found) is make
        np.testing.assert_allclose(pytree.tree_leaves(found)[0], [3, 3])
    assert g.experimental_get_tracing_count() == 1
    assert type(converted(make(a, 3.0))) is make
