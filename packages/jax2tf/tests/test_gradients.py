"""Gradients of any order: tapes inside and outside of functions, custom rules, saved models loaded without us."""

import os
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import custom_jvp, custom_vjp, grad
from bedrax.jax2tf import convert

X = np.float32(0.7)


@custom_vjp
def ruled(x):  # its derivative is not that of the sine, at every order
    return jnp.sin(x)


ruled.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * ruled_slope(x),))


@custom_jvp
def ruled_slope(x):
    return jnp.cos(x) * 3


ruled_slope.defjvp(lambda primals, tangents: (ruled_slope(primals[0]), tangents[0] * jnp.exp(primals[0]) * 5))

FUNCTIONS = {
    "power": lambda x: x**4 + jnp.sin(x),
    "custom rules": ruled,
    "loop": lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=3)[0],
}


def derivatives(f, order):
    out = []
    for _ in range(order + 1):
        out.append(float(f(X)))
        f = grad(f)
    return out


def by_tapes(f, order, x=X):
    """The value and its derivatives, with all tapes outside of `f`."""
    x = tf.constant(x)

    def value(n):
        if n == 0:
            return f(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = value(n - 1)
        return tape.gradient(y, x)

    return [float(value(n)) for n in range(order + 1)]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("how", ["eager", "graph", "compiled", "native", "native graph", "two orders"])
def test_tapes_outside(name, how):
    f = convert(FUNCTIONS[name], native_serialization="native" in how, with_gradient=2 if how == "two orders" else True)
    if how not in ("eager", "native"):
        f = tf.function(f, autograph=False, jit_compile=how == "compiled")
    order = 2 if "native" in how else 3
    np.testing.assert_allclose(by_tapes(f, order), derivatives(FUNCTIONS[name], order), rtol=1e-4)


def test_tapes_outside_and_inside():
    f = convert(FUNCTIONS["power"])

    @tf.function(autograph=False)
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(by_tapes(slope, 2), derivatives(FUNCTIONS["power"], 3)[1:], rtol=1e-4)


def test_hessian_of_unknown_sizes():
    f = tf.function(
        convert(lambda x: jnp.sum(x**3), polymorphic_shapes=["b"]),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slope = inner.gradient(y, x)
    np.testing.assert_allclose(outer.jacobian(slope, x, experimental_use_pfor=False), np.diag([6, 12, 18]), rtol=1e-5)


# ---- saved models


LOAD = PROGRAMS / "derivatives_of_saved_model.py"


def save(path, functions, with_gradients=True, **options):
    module = tf.Module()
    for name, f in functions.items():
        setattr(
            module,
            name,
            tf.function(convert(f, **options), autograph=False, input_signature=[tf.TensorSpec([], tf.float32)]),
        )
    tf.saved_model.save(
        module, str(path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=with_gradients)
    )


def load_and_differentiate(path, names, order):
    import json

    run = subprocess.run(
        [sys.executable, LOAD, str(path), json.dumps(names), str(order)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.split("FOUND")[1])


NAMES = {"power": FUNCTIONS["power"], "ruled": ruled, "loop": FUNCTIONS["loop"]}


@pytest.mark.parametrize("order", [1, 3])
def test_saved_orders(tmp_path, order):
    save(tmp_path, NAMES, with_gradient=order)
    found = load_and_differentiate(tmp_path, list(NAMES), order + 1)
    for name, f in NAMES.items():
        *values, beyond = found[name]
        np.testing.assert_allclose(values, derivatives(f, order), rtol=1e-4)
        assert "no gradients of this order" in beyond and "with_gradient" in beyond


def test_saved_and_loaded_in_one_process(tmp_path):
    save(tmp_path, NAMES, with_gradient=2)
    loaded = tf.saved_model.load(str(tmp_path))
    for name, f in NAMES.items():
        np.testing.assert_allclose(by_tapes(getattr(loaded, name), 2), derivatives(f, 2), rtol=1e-4)


def test_saved_without_gradient(tmp_path):
    save(tmp_path, NAMES, with_gradient=False)
    with pytest.raises(LookupError, match="does not support gradients"):
        by_tapes(tf.saved_model.load(str(tmp_path)).power, 1)


def test_a_model_saved_without_gradients_names_the_option(tmp_path):
    save(tmp_path, {"power": FUNCTIONS["power"]}, with_gradients=False)
    value, beyond = load_and_differentiate(tmp_path, ["power"], 1)["power"]
    assert value == pytest.approx(derivatives(FUNCTIONS["power"], 0)[0])
    assert "No gradient defined" in beyond and "SaveOptions_experimental_custom_gradients" in beyond


def test_saved_hessian_of_unknown_sizes(tmp_path):
    w = tf.Variable([1.0, 2.0])
    module = tf.Module()
    module.w = w
    f = convert(lambda w, x: jnp.sum((x @ w) ** 3), polymorphic_shapes=[None, "b, _"], with_gradient=2)
    module.f = tf.function(lambda x: f(w, x), autograph=False, input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    tf.saved_model.save(module, str(tmp_path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(str(tmp_path))
    x = tf.constant([[1.0, 0.5], [2.0, 1.0], [0.0, 1.0]])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = loaded.f(x)
        slope = inner.gradient(y, loaded.w)
    found = outer.jacobian(slope, loaded.w, experimental_use_pfor=False)
    expected = sum(6 * (r @ w.numpy()) * np.outer(r, r) for r in x.numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_train_step_is_saved(tmp_path):
    """A program with gradients of its own is saved unchanged, also if the next order does not exist."""

    def f(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, lax.stop_gradient(x)))[1] + x * x

    module = tf.Module()

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.float32)])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = convert(f)(x)
        return tape.gradient(y, x)

    module.step = step
    tf.saved_model.save(module, str(tmp_path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(str(tmp_path))
    assert float(loaded.step(X)) == pytest.approx(2 * X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no gradients of this order"):
        by_tapes(loaded.step, 1)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("in_graph", [False, True])
def test_the_cotangent_may_be_sparse(native, in_graph):
    """TensorFlow's gradient of a gather is an `IndexedSlices`."""
    x = tf.constant([0.5, 1, 2, 3])
    f = convert(jnp.sin, native_serialization=native)

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.gather(f(x), [0, 2, 2]))
        return tape.gradient(y, x)

    found = (tf.function(gradient, autograph=False) if in_graph else gradient)()
    np.testing.assert_allclose(found, np.cos(x) * [1, 0, 2, 0], rtol=1e-6)


def test_a_variable_of_keras_is_a_variable():
    import keras

    v = keras.Variable(np.float32([1, 2]))
    f = convert(lambda x: jnp.sum(x**3), native_serialization=False)
    with tf.GradientTape() as tape:
        y = f(v)
    np.testing.assert_allclose(tape.gradient(y, v.value), [3, 12])

    reads = tf.function(lambda: f(v), autograph=False)
    assert reads() == 9
    v.assign([2, 0])
    assert reads() == 8
