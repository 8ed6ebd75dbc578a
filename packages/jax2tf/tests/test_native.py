"""Native serialization: programs inside TensorFlow, at known and unknown shapes, with gradients, saved and loaded."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).with_name("programs")

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import grad
from bedrax.core.avals import ShapedArray
from bedrax.core.staging import program_of
from bedrax.jax2tf import convert
from bedrax.xla_backend.export import DisabledSafetyCheck

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 20


def flat(out):
    return [np.asarray(x) for x in tf.nest.flatten(out)]


def check(f, *args, **options):
    """The converted function computes what the function computes, eagerly and in a graph."""
    converted = convert(f, native_serialization=True, **options)
    expected = flat(f(*args))
    for got in (converted(*args), tf.function(converted, autograph=False)(*args)):
        assert len(flat(got)) == len(expected)
        for x, y in zip(flat(got), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
            assert x.dtype == y.dtype


PROGRAMS = {
    "CHLO": lambda x: (lax.erf(x), lax.asinh(x), lax.sinh(x), lax.acosh(x + 2), lax.atanh(x), lax.lgamma(x + 1), lax.digamma(x + 1)),
    "top_k": lambda x: lax.top_k(x, 2),
    "sort and cumsum": lambda x: (lax.sort(x, dimension=0), lax.cumsum(x, axis=0)),
    "scan": lambda x: lax.scan(lambda c, a: (c + a, c * a), lax.full((4,), 0.0, np.float32), x),
    "cond": lambda x: lax.cond(lax.reduce_sum(x, axes=(0, 1)) > 0, lambda y: y + 1, lambda y: y * 2, x),
    "unused": lambda x: np.float32(2),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shapes", [None, ["(b, ...)"]])
def test_programs(name, shapes):
    check(PROGRAMS[name], X, polymorphic_shapes=shapes)


def test_is_one_operation():
    f = tf.function(convert(PROGRAMS["CHLO"], native_serialization=True, with_gradient=False), autograph=False)
    operations = f.get_concrete_function(tf.TensorSpec((3, 4))).graph.get_operations()
    assert [op.type for op in operations].count("XlaCallModule") == 1


def test_unknown_sizes():
    f = convert(
        lambda x: lax.reshape(x, (x.shape[0] * x.shape[1],)) * x.shape[0],
        native_serialization=True,
        polymorphic_shapes=["(b, n)"],
    )
    g = tf.function(f, autograph=False, input_signature=[tf.TensorSpec((None, None))])
    assert g.get_concrete_function().structured_outputs.shape.as_list() == [None]
    for n in (1, 2, 5):
        x = np.ones((n, 3), np.float32)
        np.testing.assert_allclose(g(x), x.reshape(-1) * n)


def test_wrong_sizes():
    square = convert(lambda x: x * 2, native_serialization=True, polymorphic_shapes=["b, b"])
    with pytest.raises(
        ValueError,
        match=r"polymorphic shape \('b, b',\) has dimension variable 'b' corresponding to multiple values {4, 5}, for argument shapes \(TensorShape\(\[4, 5\]\),\)",
    ):
        square(np.ones((4, 5), np.float32))
    any_length = convert(lambda x: x, native_serialization=True, polymorphic_shapes=["b"])
    with pytest.raises(
        ValueError, match=r"Dimension variable b must have integer value >= 1. Found value 0 when solving b == 0"
    ):
        any_length(np.ones(0, np.float32))
    late = tf.function(square, autograph=False, input_signature=[tf.TensorSpec((None, None))])
    with pytest.raises(tf.errors.InvalidArgumentError):
        late(np.ones((4, 5), np.float32))
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables {'a', 'b'}"):
        convert(lambda x: x, native_serialization=True, polymorphic_shapes=["a + b"])(np.ones(4, np.float32))


def test_gradient():
    f = convert(
        lambda x, n: lax.reduce_sum(lax.sin(x) * x.shape[0], axes=(0, 1)) * 2 + 0 * n,
        native_serialization=True,
        polymorphic_shapes=["(b, _)", None],
    )
    g = tf.function(f, autograph=False, input_signature=[tf.TensorSpec((None, 4)), tf.TensorSpec((), tf.int32)])

    def twice(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x, 3)
            first = tape.gradient(y, x)
            total = tf.reduce_sum(first)
        return first, outer.gradient(total, x)

    x = tf.constant(X)
    # (TensorFlow cannot differentiate a `tf.function` with custom gradients twice from outside.)
    for h in (twice, tf.function(twice, autograph=False, input_signature=[tf.TensorSpec((None, 4))])):
        first, second = h(x)
        np.testing.assert_allclose(first, 6 * np.cos(X), rtol=1e-5)
        np.testing.assert_allclose(second, -6 * np.sin(X), rtol=1e-5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = g(x, 3)
    np.testing.assert_allclose(tape.gradient(y, x), 6 * np.cos(X), rtol=1e-5)
    frozen = convert(lambda x: x * 2, native_serialization=True, with_gradient=False)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = frozen(x)
    with pytest.raises(LookupError, match="does not support gradients"):
        tape.gradient(y, x)


def test_platforms():
    check(lambda x: lax.cumsum(lax.sin(x), axis=0), X, native_serialization_platforms=("cpu", "cuda"))
    check(
        lambda x: lax.cumsum(lax.sin(x), axis=0),
        X,
        native_serialization_platforms=("tpu", "cpu"),
        polymorphic_shapes=["b, _"],
    )
    elsewhere = convert(lax.sin, native_serialization=True, native_serialization_platforms=("tpu",))
    with pytest.raises(tf.errors.NotFoundError, match="not among the platforms"):
        elsewhere(X)
    unchecked = convert(
        lax.sin,
        native_serialization=True,
        native_serialization_platforms=("tpu",),
        native_serialization_disabled_checks=[DisabledSafetyCheck.platform()],
    )
    np.testing.assert_allclose(unchecked(X), np.sin(X), rtol=1e-6)


MATRICES = np.random.default_rng(0).normal(size=(2, 5, 5)).astype(np.float32)
POSITIVE = MATRICES @ MATRICES.swapaxes(1, 2) + np.eye(5, dtype=np.float32)


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (jnp.linalg.cholesky, POSITIVE),
        (lambda x: jnp.linalg.solve(x, x[..., :2] + 1), POSITIVE),
        (lambda x: (lambda w, v: [w, (v * w[..., None, :]) @ v.swapaxes(1, 2)])(*jnp.linalg.eigh(x)), POSITIVE - 4),
        (lambda x: jnp.abs(jnp.linalg.qr(x)[1]), MATRICES),
        (lambda x: jnp.linalg.svd(x, compute_uv=False), MATRICES),
        (grad(lambda x: jnp.sum(jnp.sin(jnp.linalg.cholesky(x)))), POSITIVE),
    ],
    ids=["cholesky", "solve", "eigh", "qr", "svd", "gradient"],
)
def test_linear_algebra(fun, x):
    """TensorFlow's runtime has none of jaxlib's kernels: StableHLO's operations, and compositions of others."""
    outs = convert(fun, native_serialization=True, polymorphic_shapes=["b, 5, 5"])(x)
    for out, expected in zip(flat(outs), flat(fun(jnp.asarray(x))), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_the_error_names_the_kernel_that_tensorflow_lacks():
    from bedrax.core.tracing import Primitive
    from bedrax.jax2tf import native
    from bedrax.xla_backend.tables import lowering_rules

    factor_p = Primitive("lapack_factor", "calls")
    factor_p.abstract(lambda x: x)
    lowering_rules.add(factor_p, lambda ctx, x: ctx.custom_call("lapack_spotrf_ffi", [x], x.type, {}))

    class Call:
        name = "factor"
        avals = [ShapedArray((2, 2), np.dtype(np.float32))]
        jaxpr = program_of(lambda x: [factor_p.bind(x)], avals)

    with pytest.raises(
        NotImplementedError, match="'factor' needs lapack_spotrf_ffi, which TensorFlow's runtime does not have on CPU"
    ):
        native.runner(Call, ["cpu"], ())


def test_the_version_is_one_that_tensorflow_reads():
    """The version is the older one of the two libraries. TensorFlow reads a module with CHLO operations in it."""
    from tensorflow.compiler.mlir.stablehlo import stablehlo

    from bedrax.jax2tf import native
    from bedrax.xla_backend.door import mlir, versions

    theirs, ours = stablehlo.get_current_version(), mlir.stablehlo().get_current_version()
    assert native.stablehlo_version() == min(theirs, ours, key=versions.parts)
    avals = [ShapedArray((4, 3), np.dtype(np.float32))]
    program = program_of(lambda x: [*lax.top_k(x, 2), lax.tan(x), jnp.linalg.svd(x, compute_uv=False)], avals)
    module = native.portable(program, "mixed", ("cpu", "tpu"), (0,), ["x"])
    assert b"tan" in stablehlo.deserialize_portable_artifact_str(module)  # bytes of MLIR


def test_operations_of_a_newer_version_are_named(monkeypatch):
    from bedrax.jax2tf import native

    monkeypatch.setattr(native, "stablehlo_version", lambda: "1.3.0")  # `tan` came with 1.4
    convert(lax.sin, native_serialization=True)(X)
    with pytest.raises(
        NotImplementedError,
        match=r"'tan' cannot be native: version 1\.3\.0 of StableHLO lacks stablehlo\.tan, .* the newest that TensorFlow",
    ):
        convert(lax.tan, native_serialization=True)(X)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_elements_of_four_bits(dtype):
    """XLA has two of them in a byte, and TensorFlow one."""
    x = np.array([1, 0, 1, 7, 0, 5, 3]).astype(dtype)
    for f in (lambda x: lax.rev(x, (0,)), lambda x: lax.convert_element_type(x, np.float32)):
        check(f, x)
    check(lambda x: lax.convert_element_type(x, dtype), x.astype(np.float32))


def test_elements_of_two_bits_are_refused():
    with pytest.raises(NotImplementedError, match="cannot exchange arrays of int2 with a native program"):
        convert(lambda x: lax.convert_element_type(x, "int2"), native_serialization=True)(X)


LOADER = FOLDER / "load_native_model.py"


def test_a_native_saved_model_runs_without_our_packages(tmp_path):
    """A process without our packages loads it, runs it at several sizes, and differentiates it."""
    module = tf.Module()
    f = convert(lambda x: lax.sinh(x) * x.shape[0], native_serialization=True, polymorphic_shapes=["b, 4"])
    module.f = tf.function(f, autograph=False, input_signature=[tf.TensorSpec((None, 4))])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    result = subprocess.run([sys.executable, LOADER, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "loaded" in result.stdout, result.stderr
