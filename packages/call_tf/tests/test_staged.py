"""call_tf inside traced programs: compiled by TensorFlow and embedded, or called by a native TensorFlow program."""

import concurrent.futures
import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax, shape_poly
from bedrax.autodiff import checkpoint, grad, jacrev, value_and_grad
from bedrax.batching import vmap
from bedrax.call_tf import (
    CallTfEffect,
    CallTfOrderedEffect,
    add_to_call_tf_concrete_function_list,
    call_tf,
    call_tf_effect,
    call_tf_ordered_effect,
    call_tf_p,
    check_tf_result,
    emit_tf_embedded_graph_custom_call,
)
from bedrax.core import config, staging
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.ir import eval_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.tf.tables import tf_calls, tf_functions
from bedrax.xla_backend import export, jit
from bedrax.xla_backend.tables import lowering_rules

ONE = np.float32(1)
X = np.linspace(-1, 1, 5, dtype=np.float32)


def spec(*shape, dtype=np.float32):
    return ShapeDtypeStruct(shape, dtype)


def sin_tf(x):
    return tf.sin(x)


def test_the_function_is_part_of_the_program():
    f = jit(lambda x: jnp.sin(call_tf(tf.cos)(x)))
    np.testing.assert_allclose(f(X), np.sin(np.cos(X)), rtol=1e-6)
    text = f.lower(X).as_text()
    assert "stablehlo.cosine" in text and "func.func private @call_tf_cos" in text
    assert "custom_call" not in text


def test_several_embedded_calls_in_one_program():
    def loop_tf(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x))[1]

    f = call_tf(loop_tf)
    np.testing.assert_array_equal(jit(lambda x: f(x) + call_tf(loop_tf)(f(x)))(X), 8 * X + 64 * X)


@pytest.mark.parametrize(
    "fun_tf",
    [
        tf.math.erf,
        tf.math.lgamma,
        lambda x: tf.math.top_k(x, 2).values,
        tf.sort,
        tf.cumsum,
        tf.round,
        tf.asinh,
        lambda x: tf.signal.ifft(tf.signal.fft(tf.cast(x, tf.complex64))),
        lambda x: x > 0,
        lambda x: tf.linalg.inv(tf.linalg.diag(x + 3)),
        lambda x: tf.map_fn(lambda y: y * y, x),
        lambda x: tf.nn.conv1d(x[None, :, None], tf.ones([2, 1, 3]), 1, "SAME"),
        lambda x: tf.cast(x, tf.bfloat16),
        lambda x: tf.switch_case(tf.cast(x[4], tf.int32), [lambda: x, lambda: -x]),
        lambda x: x[:0],
        lambda x: (x, (), {"a": tf.reduce_max(x)}),
        lambda x: tf.linalg.svd(x[:, None] * x, compute_uv=False),
    ],
)
def test_compiled_as_eager(fun_tf):
    """TensorFlow's eager results are the oracle."""
    wanted = tf.nest.flatten(fun_tf(tf.constant(X)))
    found = tf.nest.flatten(jit(call_tf(fun_tf))(X))
    for x, y in zip(found, wanted, strict=True):
        assert x.shape == tuple(y.shape) and x.dtype == y.dtype.as_numpy_dtype
        np.testing.assert_allclose(
            np.asarray(x).astype(np.complex64), np.asarray(y).astype(np.complex64), rtol=1e-5, atol=1e-6
        )


def test_canonical_dtypes():
    def wide(x):
        return tf.cast(x, tf.float64), tf.constant(1, tf.int64), np.ones(2)

    assert [y.dtype.name for y in jit(call_tf(wide))(ONE)] == ["float32", "int32", "float32"]
    with config.enable_x64(True):
        assert [y.dtype.name for y in jit(call_tf(wide))(ONE)] == ["float64", "int64", "float64"]


def test_inside_control_flow():
    f = call_tf(sin_tf)
    np.testing.assert_allclose(lax.cond(True, f, lambda x: x, ONE), np.sin(1), rtol=1e-6)
    carry, ys = lax.scan(lambda c, x: (call_tf(lambda a, b: a + b)(c, x), c), ONE, np.ones(3, np.float32))
    assert carry == 4
    np.testing.assert_array_equal(ys, [1, 2, 3])
    assert lax.while_loop(lambda x: x < 10, call_tf(lambda x: x * 2), ONE) == 16

    def thrice(x):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]

    expected = np.cos(1) * np.cos(np.sin(1)) * np.cos(np.sin(np.sin(1)))
    np.testing.assert_allclose(grad(thrice)(ONE), expected, rtol=1e-5)


def test_derivatives():
    f = call_tf(sin_tf)
    np.testing.assert_allclose(jit(grad(f))(ONE), np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(grad(jit(f))(ONE), np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(grad(f)))(ONE), -np.sin(1), rtol=1e-6)
    value, slope = jit(value_and_grad(lambda x: jnp.sum(checkpoint(lambda x: f(jnp.sin(x)))(x))))(X)
    np.testing.assert_allclose(value, np.sin(np.sin(X)).sum(), atol=1e-6)
    np.testing.assert_allclose(slope, np.cos(np.sin(X)) * np.cos(X), rtol=1e-5)
    strange = tf.custom_gradient(lambda x: (x * x, lambda dy: dy * 10))
    assert jit(grad(call_tf(strange)))(ONE) == 10


def test_vmap_of_a_pure_function():
    pure = call_tf(lambda x, y: (tf.reduce_sum(x) + y, x), has_side_effects=False)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    sums, same = jit(vmap(pure, in_axes=(0, None)))(rows, ONE)
    np.testing.assert_array_equal(sums, rows.sum(1) + 1)
    np.testing.assert_array_equal(same, rows)
    jacobian = jit(jacrev(call_tf(sin_tf, has_side_effects=False)))(X)
    np.testing.assert_allclose(jacobian, np.diag(np.cos(X)), rtol=1e-6)


def test_captures_are_constants_in_the_order_of_parameters():
    v, w = tf.Variable([1.0]), tf.Variable([3.0, 3.0, 3.0])
    c, d = tf.constant([2.0, 2.0]), tf.constant([4.0] * 4)
    f = jit(call_tf(lambda x, unused: (v * x[:1], c * x[:2], w * x[:3], d * x)))
    for _ in range(2):
        for factor, y in zip((1, 2, 3, 4), f(X[1:], ONE), strict=True):
            np.testing.assert_allclose(y, factor * X[1 : 1 + factor])
        v.assign([-9.0])  # the compiled program keeps the value of its time
    unread = tf.Variable(1.0)
    assert jit(call_tf(lambda x: (unread * x, x)[1]))(ONE) == 1
    np.testing.assert_array_equal(jit(grad(lambda x: call_tf(lambda x: tf.reduce_sum(w * x))(x)))(X[:3]), [3, 3, 3])


# ---- what cannot be


def test_not_compilable():
    f = call_tf(lambda x: tf.strings.length(tf.strings.format("Hello {}!", [x])))
    assert f(np.float32(42)) == 9
    with pytest.raises(
        ValueError, match=r"(?s)Error compiling TensorFlow function.*compilable functions.*StringFormat"
    ):
        jit(f)(np.float32(42))


def test_dynamic_shapes():
    x = np.array([1, 2], np.int32)
    for fun_tf in (lambda x: x[x[0] : 5], lambda x: tf.cond(x[0] >= 0, lambda: x, lambda: x[1:])):
        assert call_tf(fun_tf)(x).ndim == 1
        with pytest.raises(ValueError, match=r"output has dynamic shape.*output_shape_dtype"):
            jit(call_tf(fun_tf))(x)
    kept = call_tf(lambda x: tf.cond(x[0] >= 0, lambda: x, lambda: x[1:]), output_shape_dtype=spec(2, dtype=np.int32))
    np.testing.assert_array_equal(jit(kept)(x), x)
    with pytest.raises(ValueError, match="must be a compile-time constant"):
        jit(call_tf(lambda x: tf.reshape(x, [x[0], -1]), output_shape_dtype=spec(1, 2, dtype=np.int32)))(x)


def test_shapes_that_tensorflow_loses():
    def forgets(x):
        shapes = (tf.TensorShape([]), tf.TensorShape([None]))
        body = lambda i, y: (i + 1, tf.sin(y))
        return tf.while_loop(lambda i, y: i < 1, body, (0, x), shape_invariants=shapes, maximum_iterations=1)[1]

    with pytest.raises(ValueError, match="output_shape_dtype"):
        jit(call_tf(forgets))(X)
    declared = call_tf(forgets, output_shape_dtype=spec(5))
    np.testing.assert_allclose(jit(declared)(X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(lambda x: jnp.sum(declared(x))))(X), np.cos(X), rtol=1e-6)
    with pytest.raises(ValueError, match="Error compiling"):
        jit(call_tf(forgets, output_shape_dtype=spec(4)))(X)


def test_wrong_declarations():
    with pytest.raises(ValueError, match="pytree of the TensorFlow function results does not match"):
        jit(call_tf(lambda x: (x, x), output_shape_dtype=spec()))(ONE)
    with pytest.raises(ValueError, match=r"Result\[0\] is float32\[\] vs. expected float32\[2\]"):
        jit(call_tf(sin_tf, output_shape_dtype=spec(2)))(ONE)
    with pytest.raises(ValueError, match="not convertible"):
        jit(call_tf(tf.strings.as_string))(ONE)


def test_variables_are_not_written():
    v = tf.Variable(1.0)

    def impure(x):
        v.assign(11.0)
        return x + v

    with pytest.raises(ValueError, match="writes to variables"):
        jit(call_tf(impure))(ONE)
    assert v.numpy() == 1
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), -1)
    with pytest.raises(ValueError, match=r"resources|Error compiling"):
        jit(call_tf(table.lookup))(np.int32(1))


# ---- effects


def test_effects():
    def effects(**options):
        return staging.make_jaxpr(call_tf(sin_tf, **options))(ONE).effects

    assert effects() == {call_tf_effect} == {CallTfEffect()}
    assert effects(has_side_effects=False) == set()
    assert effects(ordered=True) == {call_tf_ordered_effect} == {CallTfOrderedEffect()}
    assert call_tf_effect != call_tf_ordered_effect
    assert call_tf(sin_tf, ordered=True)(ONE) == np.float32(np.sin(1))
    with pytest.raises(NotImplementedError, match="call_tf_graph=True"):
        jit(call_tf(sin_tf, ordered=True))(ONE)
    with pytest.raises(ValueError, match="call_tf_graph=True only support"):
        jit(call_tf(sin_tf, call_tf_graph=True))(ONE)
    assert call_tf(sin_tf, call_tf_graph=True)(ONE) == np.float32(np.sin(1))


def test_unused_calls():
    """A pure call that nothing needs does not run; one with effects does."""
    for pure in (True, False):
        f = jit(lambda x: (call_tf(sin_tf, has_side_effects=not pure)(x), x)[1])  # noqa: B023
        assert f(ONE) == 1


def test_printed():
    text = str(staging.make_jaxpr(call_tf(sin_tf))(ONE))
    assert "call_tf" in text and "fun=sin_tf" in text


# ---- SavedModels, and programs that TensorFlow runs


class _Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)], autograph=False)
    def predict(self, x):
        return tf.nn.softmax(tf.matmul(x, self.w))


def _softmax(x, w):
    e = np.exp(x @ w)
    return e / e.sum(-1, keepdims=True)


def test_saved_model_of_any_batch(tmp_path):
    tf.saved_model.save(_Model(), str(tmp_path))
    model = tf.saved_model.load(str(tmp_path))
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    predict = call_tf(model.predict, output_shape_dtype=spec(4, 2), has_side_effects=False)
    wanted = _softmax(x, np.arange(6).reshape(3, 2))
    np.testing.assert_allclose(predict(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(jit(predict)(x), wanted, rtol=1e-5)

    def score(x):
        return jnp.sum(jnp.log(predict(x)[:, 0]))

    np.testing.assert_allclose(jit(grad(score))(x), grad(score)(x), rtol=1e-5)
    np.testing.assert_allclose(grad(score)(x), np.outer(1 - wanted[:, 0], [-1, -1, -1]), rtol=1e-4)
    np.testing.assert_allclose(
        jit(call_tf(lambda x: model.predict(x)[:, :1] * 0 + 1, output_shape_dtype=spec(4, 1)))(x), np.ones((4, 1))
    )


def native(fun, *specs):
    """`fun` as a TensorFlow function around one XlaCallModule, as native serialization makes it."""
    from tensorflow.compiler.tf2xla.python import xla as tf_xla

    functions: list = []
    token = tf_functions.set(functions)
    try:
        program = export.export(
            jit(fun),
            platforms=("cpu",),
            disabled_checks=[export.DisabledSafetyCheck.custom_call("tf.call_tf_function")],
        )(*specs)
    finally:
        tf_functions.reset(token)

    def fun_tf(*tensors):
        shapes = [[d if isinstance(d, int) else None for d in a.shape] for a in program.out_avals]
        types = [tf.dtypes.as_dtype(a.dtype) for a in program.out_avals]
        return tf_xla.call_module(
            tensors,
            version=9,
            module=program.mlir_module_serialized,
            Tout=types,
            Sout=shapes,
            function_list=functions,
            platforms=["CPU"],
        )[0]

    return tf.function(fun_tf, autograph=False), functions


def test_a_native_program_can_be_called_by_call_tf():
    (b,) = shape_poly.symbolic_shape("b")
    fun_tf, functions = native(lambda x: jnp.sin(x) + 1, spec(b))
    assert not functions
    back = call_tf(fun_tf, output_shape_dtype=spec(5))
    np.testing.assert_allclose(back(X), np.sin(X) + 1, rtol=1e-6)
    np.testing.assert_allclose(jit(back)(X), np.sin(X) + 1, rtol=1e-6)


def test_tensorflow_functions_in_native_programs():
    v = tf.Variable(2.0)
    c = tf.constant([3.0])
    fun_tf, functions = native(lambda x: call_tf(lambda x: c * v * tf.sin(x), call_tf_graph=True)(x) + 1, spec(5))
    assert len(functions) == 1
    np.testing.assert_allclose(fun_tf(X), 6 * np.sin(X) + 1, rtol=1e-6)
    embedded, functions = native(lambda x: call_tf(sin_tf)(x) + 1, spec(5))
    assert not functions
    np.testing.assert_allclose(embedded(X), np.sin(X) + 1, rtol=1e-6)


def test_symbolic_shapes_in_native_programs():
    """Symbolic arguments are fine; so are results, declared or found by TensorFlow's shape inference."""
    (b,) = shape_poly.symbolic_shape("b")
    total, functions = native(call_tf(lambda x: tf.reduce_sum(tf.sin(x))), spec(b))
    assert len(functions) == 1
    for x in (X, X[:2]):
        np.testing.assert_allclose(total(x), np.sin(x).sum(), atol=1e-6)
    with pytest.raises(ValueError, match="output has dynamic shape"):
        native(call_tf(lambda x: tf.boolean_mask(x, x > 0)), spec(b))
    found, _ = native(call_tf(sin_tf), spec(b))
    np.testing.assert_allclose(found(X), np.sin(X), rtol=1e-6)
    same, _ = native(lambda x: call_tf(sin_tf, output_shape_dtype=spec(*x.shape))(x) + 1, spec(b))
    for x in (X, X[:2]):
        np.testing.assert_allclose(same(x), np.sin(x) + 1, rtol=1e-6)
    with pytest.raises(ValueError, match="static shapes"):
        export.export(jit(call_tf(lambda x: tf.reduce_sum(x))))(spec(b))


def test_in_place_in_a_conversion_to_tensorflow():
    """The function on tensors, which jax2tf looks up in a column."""
    (b,) = shape_poly.symbolic_shape("b")
    jaxpr = staging.make_jaxpr(call_tf(lambda x: tf.reduce_sum(tf.sin(x))))(spec(b))
    (eqn,) = jaxpr.eqns
    assert eqn.primitive is call_tf_p
    (out,) = tf_calls[call_tf_p](tf.constant(X), **eqn.params)
    np.testing.assert_allclose(out, np.sin(X).sum(), atol=1e-6)


def test_numpy_rule():
    from bedrax.numpy_backend.executor import evaluate

    jaxpr = staging.make_jaxpr(call_tf(sin_tf))(X)
    np.testing.assert_allclose(evaluate(jaxpr, X)[0], np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(eval_jaxpr(jaxpr, jaxpr.consts, X)[0], np.sin(X), rtol=1e-6)


def test_small_helpers():
    functions: list = []
    one, two = (tf.function(f).get_concrete_function(tf.TensorSpec([], tf.float32)) for f in (tf.sin, tf.cos))
    assert [add_to_call_tf_concrete_function_list(f, functions) for f in (one, two, one)] == [0, 1, 0]
    assert functions[0] is one and functions[1] is two
    aval = spec(2).aval
    tensor = tf.ones(2)
    assert check_tf_result(0, tensor, aval) is tensor
    assert check_tf_result(0, tensor, None) is tensor
    for wrong in (tf.ones(3), tf.ones(2, tf.int32), tf.constant(["a", "b"])):
        with pytest.raises(ValueError, match=r"Result\[1\]"):
            check_tf_result(1, wrong, aval)


def test_each_signature_and_thread_has_its_own_structure():
    g = call_tf(lambda x: (x,) if x.shape.rank == 0 else {"a": x, "b": x * 2})
    h = jit(g)
    assert isinstance(h(np.float32(1)), tuple)
    assert sorted(h(np.ones(2, np.float32))) == ["a", "b"]
    assert isinstance(jit(lambda x: g(x))(np.float32(1)), tuple)  # TensorFlow has traced this one before

    def one(i):
        out = g(np.float32(i)) if i % 2 else g(np.full(2, i, np.float32))
        return float(out[0]) if i % 2 else float(np.asarray(out["b"])[0]) / 2

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(64))) == list(range(64))


def test_a_lowering_rule_can_call_a_concrete_function():
    prim = Primitive("sine_by_tensorflow")
    prim.def_abstract_eval(lambda x: x)
    concrete = tf.function(tf.sin, autograph=False).get_concrete_function(tf.TensorSpec([5], tf.float32))

    @lowering_rules.rule(prim)
    def rule(ctx, x):
        return emit_tf_embedded_graph_custom_call(ctx, concrete, [x], False, False, ctx.avals_out)

    fun_tf, functions = native(lambda x: prim.bind(x) + 1, spec(5))
    assert len(functions) == 1
    np.testing.assert_allclose(fun_tf(X), np.sin(X) + 1, rtol=1e-6)
    with pytest.raises(ValueError, match="only supports programs that jax2tf.convert exports"):
        jit(prim.bind)(X)
