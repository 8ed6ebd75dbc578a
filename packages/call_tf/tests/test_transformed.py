"""call_tf under vmap, jvp and their compositions; symbolic shapes; structures of results by signature."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import threading

import numpy as np
import pytest
import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax, shape_poly
from bedrax.autodiff import grad, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp
from bedrax.batching import vmap
from bedrax.call_tf import call_tf
from bedrax.core import staging
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.jax2tf import convert
from bedrax.shape_poly import symbolic_shape
from bedrax.xla_backend import jit

F32 = np.float32
X = np.linspace(0.1, 1.2, 12, dtype=F32).reshape(4, 3)
W = np.linspace(-1, 1, 6, dtype=F32).reshape(3, 2)


@tf.custom_gradient
def strange(x):
    return tf.sin(x), lambda ct: ct * 7 * tf.cos(x)


# name -> (TensorFlow's function, the same by us)
FUNCTIONS = {
    "matmul": (lambda x, w: tf.linalg.matvec(w, tf.sin(x), transpose_a=True), lambda x, w: jnp.sin(x) @ w),
    "control flow": (
        lambda x, w: tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, tf.sin(y) * w[0, 0]), (0, x), maximum_iterations=3
        )[1],
        lambda x, w: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * w[0, 0], x),
    ),
    "branches": (
        lambda x, w: tf.cond(x[0] > 0.5, lambda: x * x, lambda: -x),
        lambda x, w: jnp.where(x[0] > 0.5, x * x, -x),
    ),
    "unused": (lambda x, w: tf.reduce_sum(w), lambda x, w: jnp.sum(w)),
}
COMPILED = [False, True]


def close(found, wanted):
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("effects", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap(name, effects, compiled):
    of_tf, ours = FUNCTIONS[name]
    f = call_tf(of_tf, has_side_effects=effects)
    run = jit if compiled else lambda f: f
    ws = np.stack([W, 2 * W, -W, 0 * W])
    close(run(vmap(f, in_axes=(0, None)))(X, W), vmap(ours, in_axes=(0, None))(X, W))
    close(run(vmap(f, in_axes=(1, -1)))(X.T.copy(), np.moveaxis(ws, 0, -1)), vmap(ours)(X, ws))
    nested = lambda f: vmap(vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    if not effects:
        close(run(nested(f))(X, ws), nested(ours)(X, ws))
        total = lambda f: vmap(grad(lambda x, w: jnp.sum(f(x, w) ** 2), argnums=(0, 1)), in_axes=(0, None))
        close(run(total(f))(X, W), total(ours)(X, W))


def test_vmap_of_nothing():
    f = vmap(call_tf(lambda x: (tf.reduce_sum(x), x * 2), has_side_effects=False))
    total, twice = f(np.zeros((0, 3), F32))
    assert total.shape == (0,) and twice.shape == (0, 3)


def test_effects_of_every_element():
    v, seen = tf.Variable(tf.zeros([])), []

    def add(x):
        seen.append(float(x))
        v.assign_add(x)
        return v + 0

    np.testing.assert_allclose(vmap(call_tf(add))(X[0]), np.cumsum(X[0]), rtol=1e-6)
    np.testing.assert_allclose(seen, X[0])
    np.testing.assert_allclose(vmap(call_tf(add, ordered=True))(X[1]), X[0].sum() + np.cumsum(X[1]), rtol=1e-6)
    graph = tf.function(convert(lambda x: vmap(call_tf(lambda y: v.assign_add(y) + 0))(x)), autograph=False)
    v.assign(0.0)
    np.testing.assert_allclose(graph(X[0]), np.cumsum(X[0]), rtol=1e-6)
    assert float(v) == pytest.approx(X[0].sum(), rel=1e-6)
    with pytest.raises(ValueError, match="writes to variables"):
        jit(vmap(call_tf(lambda y: v.assign_add(y))))(X[0])


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode(name, compiled):
    of_tf, ours = FUNCTIONS[name]
    f = call_tf(of_tf, has_side_effects=False)
    run = jit if compiled else lambda f: f
    x = X[1]
    push = lambda f: lambda x, t: jvp(f, (x, W), (t, W + 1))
    close(run(push(f))(x, X[2]), push(ours)(x, X[2]))
    only = lambda f: lambda x, t: jvp(lambda x: f(x, W), (x,), (t,))[1]
    close(run(only(f))(x, X[2]), only(ours)(x, X[2]))
    close(run(jacfwd(f, argnums=(0, 1)))(x, W), jacfwd(ours, argnums=(0, 1))(x, W))
    close(run(jacrev(f))(x, W), jacrev(ours)(x, W))
    total = lambda f: lambda x: jnp.sum(f(x, W) ** 2)
    close(run(hessian(total(f)))(x), hessian(total(ours))(x))
    close(run(jacrev(jacfwd(total(f))))(x), hessian(total(ours))(x))
    if name == "matmul":
        close(run(jacfwd(jacfwd(total(f))))(x), hessian(total(ours))(x))
        close(run(grad(lambda x: jnp.sum(grad(total(f))(x))))(x), grad(lambda x: jnp.sum(grad(total(ours))(x)))(x))


def test_linear_maps():
    of_tf, ours = FUNCTIONS["matmul"]
    f = call_tf(of_tf, has_side_effects=False)
    y, push = linearize(lambda x: f(x, W), X[0])
    y_ours, push_ours = linearize(lambda x: ours(x, W), X[0])
    close((y, push(X[1]), vmap(push)(X)), (y_ours, push_ours(X[1]), vmap(push_ours)(X)))
    _, back = vjp(vmap(lambda t: jvp(lambda x: f(x, W), (X[0],), (t,))[1]), X)
    _, back_ours = vjp(vmap(lambda t: jvp(lambda x: ours(x, W), (X[0],), (t,))[1]), X)
    close(back(np.ones((4, 2), F32)), back_ours(np.ones((4, 2), F32)))


@pytest.mark.parametrize("compiled", COMPILED)
def test_custom_gradients_in_forward_mode(compiled):
    run = jit if compiled else lambda f: f
    f = call_tf(strange)
    assert run(lambda x: jvp(f, (x,), (F32(1),))[1])(F32(0)) == pytest.approx(7)
    close(run(vmap(grad(f)))(X[0]), 7 * np.cos(X[0]))


def test_integers_have_no_tangents():
    f = call_tf(lambda x, n: (x * tf.cast(n, tf.float32), n + 1), has_side_effects=False)
    (y, m), (ty, tm) = jvp(f, (F32(2), np.int32(3)), (F32(1), np.zeros((), [("float0", "V")])))
    assert (y, m, ty) == (6, 4, 3) and np.shape(tm) == ()
    (value, _), slope = value_and_grad(f, has_aux=True)(F32(2), np.int32(3))
    assert (value, slope) == (6, 3)


# ---- symbolic shapes


def test_declared_symbolic_shapes():
    def f(x, y):
        b, c = x.shape[0], y.shape[0]
        like = lambda *shape: ShapeDtypeStruct(shape, F32)
        both = call_tf(lambda x, y: tf.concat([x, y], 0), output_shape_dtype=like(b + c))(x, y)
        pair = call_tf(
            lambda x, y: (x[:, None] * y, tf.reshape(x[:, None] * y, [-1])),
            output_shape_dtype=(like(b, c), like(b * c)),
        )
        return both + 1, *pair(x, y)

    for native in (False, True):
        g = tf.function(
            convert(f, polymorphic_shapes=["b", "c"], native_serialization=native, with_gradient=False),
            autograph=False,
            input_signature=[tf.TensorSpec([None], tf.float32)] * 2,
        )
        for n, m in ((2, 3), (4, 1)):
            both, outer, flat = g(X.ravel()[:n], X.ravel()[:m])
            np.testing.assert_allclose(both, np.concatenate([X.ravel()[:n], X.ravel()[:m]]) + 1)
            np.testing.assert_allclose(outer, np.outer(X.ravel()[:n], X.ravel()[:m]), rtol=1e-6)
            assert flat.shape == (n * m,)


INFERRED = {  # function, specifications of its arguments, expected shapes of results
    "same": (tf.sin, ["b, 3"], ["(b, 3)"]),
    "joined": (lambda x, y: tf.concat([x, y], 0), ["b", "c"], ["(c + b)"]),
    "outer": (lambda x, y: (x[:, None] * y, tf.reshape(x[:, None] * y, [-1])), ["b", "c"], ["(b, c)", "(b*c)"]),
    "strides": (lambda x: (x[::2], x[1:], x[: tf.shape(x)[0] // 4]), ["b"], None),
    "pooled": (lambda x: tf.nn.max_pool1d(x[None, :, None], 3, 2, "VALID"), ["b"], None),
    "constrained": (lambda x: tf.reshape(x, [-1, 8]), ["b"], None),
    "flat": (lambda x: tf.reshape(x, [-1]), ["b, 2*b"], ["(2*b^2)"]),
}


@pytest.mark.parametrize("name", INFERRED)
def test_inferred_symbolic_shapes(name):
    """TensorFlow's shape inference at some sizes tells how results depend on symbolic dimensions."""
    fun_tf, texts, expected = INFERRED[name]
    constraints = ["mod(b, 8) == 0"] if name == "constrained" else ["b >= 4"] if name in ("strides", "pooled") else []
    scope = shape_poly.SymbolicScope(constraints)
    args = [ShapeDtypeStruct(shape_poly.symbolic_shape(t, scope=scope), F32) for t in texts]
    avals = staging.make_jaxpr(call_tf(fun_tf))(*args).out_avals
    if expected is not None:
        assert [f"({', '.join(map(str, a.shape))})" for a in avals] == expected
    for n, m in ((8, 5), (16, 3), (40, 1)):
        env = {"b": n, "c": m}
        at = lambda shape, env=env: tuple([d if isinstance(d, int) else d.evaluate(env) for d in shape])
        outs = tf.nest.flatten(fun_tf(*[tf.zeros(at(a.shape)) for a in args]))
        assert [tuple(x.shape) for x in outs] == [at(a.shape) for a in avals]


@pytest.mark.parametrize("native", [False, True])
def test_programs_of_inferred_shapes(native):
    f = lambda x, y: jnp.sum(call_tf(lambda x, y: tf.concat([tf.sin(x), y], 0))(x, y) * (x.shape[0] + 1))
    g = tf.function(
        convert(f, polymorphic_shapes=["b", "c"], native_serialization=native, with_gradient=False),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.float32)] * 2,
    )
    for n, m in ((2, 3), (4, 1)):
        x, y = X.ravel()[:n], X.ravel()[:m]
        np.testing.assert_allclose(g(x, y), (np.sin(x).sum() + y.sum()) * (n + 1), rtol=1e-5)


@pytest.mark.parametrize(
    "fun_tf",
    [
        lambda x: tf.boolean_mask(x, x > 0),
        lambda x: x[: tf.cast(tf.exp(tf.cast(tf.shape(x)[0], tf.float32)), tf.int32) % 7],
    ],
)
def test_shapes_that_are_not_found(fun_tf):
    (b,) = shape_poly.symbolic_shape("b")
    with pytest.raises(ValueError, match="output has dynamic shape.*output_shape_dtype"):
        staging.make_jaxpr(call_tf(fun_tf))(ShapeDtypeStruct((b,), F32))


def test_symbolic_batch():
    """vmap over a size that is not known, and gradients of it."""
    f = call_tf(lambda x: tf.reduce_sum(x * x), has_side_effects=False)
    g = tf.function(
        convert(lambda x: vmap(grad(f))(x), polymorphic_shapes=["b, _"]),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3], tf.float32)],
    )
    for n in (1, 4):
        np.testing.assert_allclose(g(X[:n]), 2 * X[:n], rtol=1e-6)
    (b,) = symbolic_shape("b")
    types = staging.make_jaxpr(vmap(f))(ShapeDtypeStruct((b, 3), F32)).out_avals
    assert types[0].shape == (b,)


# ---- structures


def test_structure_by_signature():
    f = call_tf(lambda x: {"a": x} if x.shape.rank else (x, x + 1), has_side_effects=False)

    def both(x):
        first = f(x)  # the other signature is traced between this call and its use
        second = f(x[0])
        return first["a"] + second[1]

    close(jit(both)(X[0]), X[0] + X[0, 0] + 1)
    close(both(X[0]), X[0] + X[0, 0] + 1)
    errors = []

    def work(x, wanted):
        for _ in range(30):
            if type(f(x)) is not wanted:
                errors.append(x)

    threads = [threading.Thread(target=work, args=a) for a in [(X[0], dict), (X[0, 0], tuple)] * 2]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors
