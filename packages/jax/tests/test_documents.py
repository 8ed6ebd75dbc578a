"""Promises of the documents for users of `jax`: the FAQ, the page on tracing, and the autodiff cookbook.

Every test is one promise, in our own words, with the printed results and the errors that the documents state.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import grad, jacfwd, jacrev, jit, jvp, random, tree_util, vjp, vmap

PROGRAMS = Path(__file__).with_name("programs")

# ---- jit: side effects, numerics, size of programs


def test_a_side_effect_happens_while_tracing_only(capsys):
    state = {"y": 0}

    def impure(x):
        print("Inside:", state["y"])
        return x + state["y"]

    eager, compiled = [], []
    for f, seen in ((impure, eager), (jit(impure), compiled)):
        for y in range(3):
            state["y"] = y
            seen.append(int(f(y)))
    assert eager == [0, 2, 4]
    assert compiled == [0, 1, 2]
    assert capsys.readouterr().out.splitlines() == ["Inside: 0", "Inside: 1", "Inside: 2", "Inside: 0"]


def test_numerics_of_compiled_programs():
    def log_sqrt(x):
        return jnp.log(jnp.sqrt(x))

    assert str(log_sqrt(jnp.pi)) == "0.572365"
    assert str(jit(log_sqrt)(jnp.pi)) == "0.5723649"

    def log_exp(x):
        return jnp.log(jnp.exp(x))

    assert str(log_exp(100.0)) == "inf"
    # XLA may simplify log(exp(x)) to x: that of jaxlib 0.10.2 does, that of 0.12.0.1 does not.
    assert str(jit(log_exp)(100.0)) in ("100.0", "inf")


def test_length_of_programs_with_python_loops_and_scan():
    def unrolled(x):
        for _ in range(200):
            x = jnp.sin(x)
        return x

    def rolled(x):
        return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=200)[0]

    lines = [len(str(jax.make_jaxpr(f)(1.0)).splitlines()) for f in (unrolled, rolled)]
    assert lines[0] > 200 > 20 > lines[1]
    np.testing.assert_allclose(jit(rolled)(1.0), unrolled(1.0), rtol=1e-5)


# ---- jit and methods


def _plain(decorator):
    class Scaled:
        def __init__(self, x, mul):
            self.x = x
            self.mul = mul

        @decorator
        def calc(self, y):
            return self.x * y if self.mul else y

    return Scaled


def test_a_method_of_an_unknown_type_is_an_error():
    with pytest.raises(TypeError, match="not a valid JAX type") as info:
        _plain(jit)(2, True).calc(3)
    assert "Scaled" in str(info.value)


def test_a_helper_outside_the_class():
    @partial(jit, static_argnums=0)
    def helper(mul, x, y):
        return x * y if mul else y

    assert str(helper(True, 2, 3)) == "6"
    assert str(helper(False, 2, 3)) == "3"


def test_self_as_static_argument_is_compared_by_identity():
    c = _plain(partial(jit, static_argnums=0))(2, True)
    assert str(c.calc(3)) == "6"
    c.mul = False
    assert str(c.calc(3)) == "6"  # the documented catch: the mutation is not seen


def test_self_as_static_argument_with_hash_and_eq():
    Plain = _plain(partial(jit, static_argnums=0))

    class Hashed(Plain):
        def __hash__(self):
            return hash((self.x, self.mul))

        def __eq__(self, other):
            return isinstance(other, Hashed) and (self.x, self.mul) == (other.x, other.mul)

    assert str(Hashed(2, True).calc(3)) == "6"
    assert str(Hashed(2, False).calc(3)) == "3"
    assert str(Hashed(2, True).calc(3)) == "6"
    assert Plain.calc._cache_size() == 2  # equal objects share a program


def test_self_as_pytree():
    Node = _plain(jit)
    tree_util.register_pytree_node(Node, lambda c: ((c.x,), {"mul": c.mul}), lambda aux, xs: Node(*xs, **aux))
    c = Node(2, True)
    assert str(c.calc(3)) == "6"
    c.mul = False
    assert str(c.calc(3)) == "3"
    assert str(Node(jnp.array(2), True).calc(3)) == "6"


# ---- placement


def test_uncommitted_arrays_are_on_the_default_device():
    x = jnp.ones(3)
    assert x.devices() == {jax.devices()[0]}
    assert not x.committed
    assert jax.device_put(np.ones(3)).devices() == {jax.devices()[0]}
    assert not jax.device_put(1).committed


def test_committed_arrays_commit_results():
    device = jax.devices()[0]
    x = jax.device_put(1, device)
    assert x.committed
    assert (x + 1).committed
    assert jit(lambda a: a * 2)(x).committed
    assert jax.device_put(x).committed and jax.device_put(x, device).committed
    assert not (jnp.ones(()) + 1).committed
    assert not jax.device_put(jnp.ones(())).committed and jax.device_put(jnp.ones(()), device).committed


def test_default_device_is_a_context():
    code = PROGRAMS / "default_device.py"
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_arrays_are_committed_as_the_faq_states():
    code = PROGRAMS / "commitment.py"
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run([sys.executable, code], capture_output=True, text=True, env={**os.environ, **flags})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("platforms, answer", [("cpu", "cpu"), ("cuda,cpu", "cpu"), ("", "cpu"), ("rocket", "error")])
def test_platforms_are_chosen_in_order(platforms, answer):
    """JAX_PLATFORMS, or absl's option, lists the platforms of a process. The first available one is the default."""
    pytest.importorskip("absl")
    code = "import jax; print(jax.default_backend(), jax.devices()[0].platform)"
    absl = "import jax; jax.config.parse_flags_with_absl();" + code
    runs = [([code], {"JAX_PLATFORMS": platforms}), ([absl, f"--jax_platforms={platforms}"], {"JAX_PLATFORMS": ""})]
    for arguments, variables in runs:
        done = subprocess.run(
            [sys.executable, "-c", *arguments], capture_output=True, text=True, env={**os.environ, **variables}
        )
        assert (done.stdout.split() == [answer] * 2) if answer != "error" else done.returncode, done.stderr
        assert answer != "error" or platforms.split(",")[0] in done.stderr


def test_block_until_ready():
    x = jit(jnp.sin)(jnp.arange(3.0))
    assert x.block_until_ready() is x
    assert jax.block_until_ready({"a": x, "b": 1})["a"] is x


# ---- values while functions are transformed


def test_a_tracer_prints_its_abstract_value(capsys):
    def func(x):
        print(x)
        return jnp.cos(x)

    assert float(jit(func)(0.0)) == 1.0
    assert capsys.readouterr().out.startswith("Traced<ShapedArray(float32[]")  # weak types are marked


def test_the_type_of_tracers():
    seen = []
    jit(lambda x: seen.append(type(x)) or x)(jnp.arange(5))
    assert seen[0] is jax.interpreters.partial_eval.DynamicJaxprTracer
    assert issubclass(seen[0], jax.core.Tracer)


def divide(x, y):
    return x / y if y >= 1.0 else 0.0


def test_control_flow_on_values():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jit(divide)(3.0, 2.0)
    assert jit(divide, static_argnums=1)(3.0, 2.0) == 1.5
    assert jit(divide, static_argnums=1)(3.0, 0.5) == 0.0
    assert grad(divide)(3.0, 2.0) == 0.5
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jit(grad(divide))(3.0, 2.0)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        vmap(divide)(jnp.ones(2), jnp.ones(2))


@pytest.mark.parametrize("convert", [bool, int, float, complex, np.asarray, list])
def test_conversions_of_abstract_tracers_fail(convert):
    with pytest.raises((jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError, TypeError)):
        jit(lambda x: convert(x))(1.0)


def test_concrete_tracers_convert():
    seen = []

    def f(x):
        seen.extend([int(x), float(x), bool(x), x.shape])
        return x * x

    assert grad(f)(3.0) == 6.0
    assert seen == [3, 3.0, True, ()]


def test_control_flow_primitives_trace_abstractly():
    def body(i, x):
        return x * 2 if x > 0 else x

    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.lax.fori_loop(0, 3, body, 1.0)
    for loop in (
        lambda f: jax.lax.cond(True, f, f, 1.0),
        lambda f: jax.lax.while_loop(lambda x: x < 3, f, 1.0),
        lambda f: jax.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2),
    ):
        with pytest.raises(jax.errors.TracerBoolConversionError):
            loop(lambda x: x + 1 if x > 0 else x)


# ---- donation


def add(x, y):
    return x + y


def test_a_donated_buffer_is_deleted():
    x, y = jax.device_put(np.ones((2, 3))), jax.device_put(np.ones((2, 3)))
    z = jit(add, donate_argnums=(1,))(x, y)
    np.testing.assert_array_equal(z, np.full((2, 3), 2.0))
    assert y.is_deleted() and not x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        y + 1


def test_donation_by_keyword_of_names():
    x, y = jax.device_put(np.ones((2, 3))), jax.device_put(np.ones((2, 3)))
    jit(add, donate_argnames="y")(x=x, y=y)
    assert y.is_deleted() and not x.is_deleted()


def test_donation_by_position_ignores_keywords():
    x, y = jax.device_put(np.ones((2, 3))), jax.device_put(np.ones((2, 3)))

    def f(*args, **kwargs):
        return add(*args, **kwargs)

    jit(f, donate_argnums=(0, 1))(x=x, y=y)
    assert not x.is_deleted() and not y.is_deleted()


def test_donation_of_a_tree():
    xs = [jax.device_put(np.ones((2, 3))), jax.device_put(np.ones((3, 4)))]
    zs = jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)(xs)
    assert [z.shape for z in zs] == [(2, 3), (3, 4)]
    assert all(x.is_deleted() for x in xs)


@pytest.mark.parametrize("shape, argnums", [((2, 3), (0, 1)), ((1, 3), (1,))])
def test_unusable_donations_warn(shape, argnums):
    x, y = jax.device_put(np.ones((2, 3))), jax.device_put(np.ones(shape))
    with pytest.warns(UserWarning, match="Some donated buffers were not usable"):
        jit(add, donate_argnums=argnums)(x, y)


# ---- derivatives at and around where


def test_where_and_undefined_branches():
    def my_log(x):
        return jnp.where(x > 0.0, jnp.log(x), 0.0)

    def safe_log(x):
        return jnp.where(x > 0.0, jnp.log(jnp.where(x > 0.0, x, 1.0)), 0.0)

    def log_or_y(x, y):
        return jnp.where(x > 0.0, jnp.log(jnp.where(x > 0.0, x, 1.0)), y)

    assert my_log(0.0) == 0.0 and np.isnan(grad(my_log)(0.0))
    assert safe_log(0.0) == 0.0 and grad(safe_log)(0.0) == 0.0
    assert grad(log_or_y, argnums=(0, 1))(0.0, 5.0) == (0.0, 1.0)
    assert grad(safe_log)(2.0) == 0.5


def test_step_functions_have_zero_gradient():
    def step(x):
        return (x > 0).astype(float)

    x = jnp.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    assert str(step(x)) == "[0. 0. 0. 1. 1.]"
    assert str(vmap(grad(step))(x)) == "[0. 0. 0. 0. 0.]"

    z = jnp.array([-10.0, -1.0, 0.0, 1.0, 10.0])
    with np.printoptions(suppress=True, precision=2):
        assert str(jax.nn.sigmoid(z)) == "[0.   0.27 0.5  0.73 1.  ]"
        assert str(vmap(grad(jax.nn.sigmoid))(z)) == "[0.   0.2  0.25 0.2  0.  ]"
    for smooth in (jax.nn.softmax, jax.nn.soft_sign, jax.nn.softplus):
        assert np.all(np.isfinite(jacrev(smooth)(z)))


# ---- looking at values of a compiled program


def test_callbacks_get_runtime_values(capsys):
    @jit
    def f(x):
        jax.debug.print("x is {}", x)
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    np.testing.assert_allclose(f(jnp.arange(3.0)), np.sin(np.arange(3.0)), rtol=1e-6)
    jax.effects_barrier()
    assert capsys.readouterr().out == "x is [0. 1. 2.]\n"

    seen = []
    jit(lambda x: jax.experimental.io_callback(lambda v: seen.append(np.asarray(v).tolist()), None, x))(jnp.arange(2))
    jax.effects_barrier()
    assert seen == [[0, 1]]


# ---- the autodiff cookbook


def predict(W, b, inputs):
    return 0.5 * (jnp.tanh((jnp.dot(inputs, W) + b) / 2) + 1)


@pytest.fixture(scope="module")
def regression():
    inputs = jnp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
    key, W_key, b_key = random.split(random.PRNGKey(0), 3)
    W, b = random.normal(W_key, (3,)), random.normal(b_key, ())
    return partial(predict, b=b, inputs=inputs), W, key


def sigmoid_jacobian(f, W, inputs):
    p = np.asarray(f(W))
    return (p * (1 - p))[:, None] * inputs


def test_jvp_and_vjp_of_a_layer(regression):
    f, W, key = regression
    J = sigmoid_jacobian(f, W, np.asarray(f.keywords["inputs"]))
    v = random.normal(key, W.shape)
    y, u = jvp(f, (W,), (v,))
    np.testing.assert_allclose(y, f(W), rtol=1e-6)
    np.testing.assert_allclose(u, J @ np.asarray(v), rtol=1e-5, atol=1e-6)

    y, pull = vjp(f, W)
    c = random.normal(key, y.shape)
    np.testing.assert_allclose(pull(c)[0], np.asarray(c) @ J, rtol=1e-5, atol=1e-6)


def test_products_with_matrices(regression):
    f, W, key = regression
    y, pull = vjp(f, W)
    U = random.normal(key, (128, *y.shape))
    (outs,) = vmap(pull)(U)
    np.testing.assert_allclose(outs[::16], jnp.vstack([pull(m)[0] for m in U[::16]]), rtol=1e-5, atol=1e-6)

    S = random.normal(key, (128, *W.shape))
    push = vmap(lambda s: jvp(f, (W,), (s,))[1])
    np.testing.assert_allclose(
        push(S)[::16], jnp.vstack([jvp(f, (W,), (s,))[1] for s in S[::16]]), rtol=1e-5, atol=1e-6
    )


def test_jacobians_written_by_hand(regression):
    f, W, _ = regression

    def our_jacrev(x):
        y, pull = vjp(f, x)
        return vmap(pull, in_axes=0)(jnp.eye(len(y)))[0]

    def our_jacfwd(x):
        return vmap(lambda s: jvp(f, (x,), (s,))[1], in_axes=1)(jnp.eye(len(x))).T

    J = sigmoid_jacobian(f, W, np.asarray(f.keywords["inputs"]))
    for jacobian in (our_jacrev, our_jacfwd, jacrev(f), jacfwd(f), jit(jacrev(f)), jit(jacfwd(f))):
        got = jacobian(W)
        assert got.shape == (4, 3)
        np.testing.assert_allclose(got, J, rtol=1e-5, atol=1e-6)


def test_hessian_vector_products():
    def f(X):
        return jnp.sum(jnp.tanh(X) ** 2)

    def forward_over_reverse(f, primals, tangents):
        return jvp(grad(f), primals, tangents)[1]

    def reverse_over_forward(f, primals, tangents):
        return grad(lambda primals: jvp(f, primals, tangents)[1])(primals)[0]

    def reverse_over_reverse(f, primals, tangents):
        return grad(lambda x: jnp.vdot(grad(f)(x), tangents[0]))(*primals)

    key1, key2 = random.split(random.key(1))
    X, V = random.normal(key1, (6, 5)), random.normal(key2, (6, 5))
    expected = jnp.tensordot(jax.hessian(f)(X), V, 2)
    t = np.tanh(np.asarray(X, np.float64))
    by_hand = 2 * (1 - t**2) * (1 - 3 * t**2) * np.asarray(V)
    np.testing.assert_allclose(expected, by_hand, rtol=1e-4, atol=1e-5)
    for hvp in (forward_over_reverse, reverse_over_forward, reverse_over_reverse):
        np.testing.assert_allclose(hvp(f, (X,), (V,)), by_hand, rtol=1e-4, atol=1e-5)


def test_the_linear_part_compiles_though_the_function_would_not():
    def f(x):
        try:
            if x < 3:
                return 2 * x**3
            raise ValueError
        except ValueError:
            return jnp.pi * x

    _, pull = vjp(f, 4.0)
    (ct,) = jit(pull)(1.0)
    assert str(ct) == "3.1415927"
    assert ct.dtype == jnp.float32 and ct.weak_type


@pytest.mark.parametrize("seed", range(3))
def test_complex_jvp_and_vjp(seed):
    keys = random.split(random.PRNGKey(seed), 3)
    a, b, c, d = random.uniform(keys[0], (4,))
    x, y = random.uniform(keys[1], (2,))
    p, q = random.uniform(keys[2], (2,))

    def u(x, y):
        return a * x + b * y

    def v(x, y):
        return c * x + d * y

    def fun(z):
        x, y = jnp.real(z), jnp.imag(z)
        return u(x, y) + v(x, y) * 1j

    z = x + y * 1j
    _, tangent = jvp(fun, (z,), (p + q * 1j,))
    expected = grad(u, 0)(x, y) * p + grad(u, 1)(x, y) * q + (grad(v, 0)(x, y) * p + grad(v, 1)(x, y) * q) * 1j
    np.testing.assert_allclose(tangent, expected, rtol=1e-5)

    _, pull = vjp(fun, z)
    (ct,) = pull(jnp.array(p + q * 1j))
    expected = (
        grad(u, 0)(x, y) * p + grad(v, 0)(x, y) * (-q) + grad(u, 1)(x, y) * p * (-1j) + grad(v, 1)(x, y) * (-q) * (-1j)
    )
    np.testing.assert_allclose(ct, expected, rtol=1e-5, atol=1e-6)


def test_complex_gradients():
    def squared_modulus(z):
        x, y = jnp.real(z), jnp.imag(z)
        return x**2 + y**2

    z = 3.0 + 4j
    g = grad(squared_modulus)(z)
    assert g == 6.0 - 8.0j and g.dtype == jnp.complex64
    g = grad(jnp.sin, holomorphic=True)(z)
    np.testing.assert_allclose(g, -27.034946 - 3.8511534j, rtol=1e-6)
    assert g.weak_type
    assert grad(jnp.conjugate, holomorphic=True)(z) == 1.0 - 0.0j
    with pytest.raises(TypeError, match="holomorphic"):
        grad(jnp.sin)(z)


def test_gradient_through_a_complex_cholesky():
    A = jnp.array([[5.0, 2.0 + 3j, 5j], [2.0 - 3j, 7.0, 1.0 + 7j], [-5j, 1.0 - 7j, 12.0]])

    def f(X):
        L = jnp.linalg.cholesky(X)
        return jnp.sum((L - jnp.sin(L)) ** 2)

    expected = [
        [-0.7534182, -3.0509028 - 10.940544j, 5.9896846 + 3.542303j],
        [-3.0509028 + 10.940544j, -8.904491, -5.1351523 - 6.559373j],
        [5.9896846 - 3.542303j, -5.1351523 + 6.559373j, 0.01320427],
    ]
    np.testing.assert_allclose(grad(f, holomorphic=True)(A), expected, rtol=1e-3, atol=5e-4)


def test_documents_run_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(jit(grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))(jnp.ones(3))[0]) == pytest.approx(np.sin(2.0))
