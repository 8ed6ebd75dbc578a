"""Behaviour besides values that programs rely on: constants, names, logs, residuals, errors."""

import contextlib
import functools
import io
import logging
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify, jet
from jax.sharding import PartitionSpec as P

THREE = np.ones(3)  # float64, so it is converted where it is used


@pytest.mark.parametrize("constant", [THREE, THREE.astype("f"), THREE.astype(jnp.bfloat16)], ids=lambda c: str(c.dtype))
@pytest.mark.parametrize(
    "fun",
    [
        lambda c, x: x + c + c,
        lambda c, x: x * jnp.sin(c) + c,
        lambda c, x: lax.scan(lambda a, _: (a + c, c), x + c, None, length=2),
        lambda c, x: jax.jit(lambda y: y + c)(x) * c,
    ],
)
def test_a_constant_is_in_the_program_once(fun, constant):
    x = jnp.zeros(3, jnp.result_type(constant))
    assert len(jax.make_jaxpr(functools.partial(fun, constant))(x).consts) == 1


def test_constants_of_other_bits_are_others():
    zero, minus = np.zeros(2, "f"), -np.zeros(2, "f")
    program = jax.make_jaxpr(lambda x: (x / zero, x / minus, x * np.zeros(2, "i4").view("f")))(jnp.ones(2))
    assert len(program.consts) == 2
    first, second, _ = jax.jit(lambda x: (x / zero, x / minus, x))(jnp.ones(2))
    np.testing.assert_array_equal([first, second], [[np.inf] * 2, [-np.inf] * 2])


@pytest.mark.parametrize("dtype", ["f", "d", "i4"])
def test_a_write_to_an_array_during_tracing_changes_no_earlier_use(dtype):
    def f(x):
        c = np.ones(3, dtype)
        for i in range(3):
            x = x + c
            c[i] = 5
        return x

    np.testing.assert_array_equal(jax.jit(f)(0.0), f(0.0))
    np.testing.assert_array_equal(jax.linearize(f, 0.0)[0], f(0.0))


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, lambda f: lambda x: jax.vmap(f)(x[None])[0]])
@pytest.mark.parametrize(
    "fun", [lambda x: x * 2.0, lambda x: 1 + x, lambda x: 3**x, lambda x: jnp.where(x > 1, x, 0.0), lambda x: x**2]
)
def test_numbers_with_arrays_wider_than_the_mode(fun, around):
    with jax.enable_x64(True):
        wide = jnp.asarray(2.0, jnp.float64)
    out = around(fun)(wide)
    np.testing.assert_allclose(out, fun(2.0), rtol=1e-6)
    assert out.dtype in ("float32", "float64")


def test_rules_in_another_mode_than_their_function():
    @jax.custom_jvp
    def f(x):
        return x * 2.0

    @f.defjvp
    def rule(primals, tangents):
        with jax.enable_x64(False):
            return f(*primals), tangents[0] * 2.0

    with jax.enable_x64(True):
        for x in (jnp.float64(1), jnp.float32(1)):
            out, tangent = jax.jvp(f, (x,), (x,))
            assert (out.dtype, tangent.dtype) == ("float32", "float32")


def _saved(fun, *args):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.ad_checkpoint.print_saved_residuals(fun, *args)
    return len(text.getvalue().splitlines())


def test_the_number_of_residuals():
    weights, x = jnp.ones((4, 4)), jnp.ones((4, 4))
    dots = functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.checkpoint_dots)

    def two(x):
        return jnp.sin(jnp.sin(x @ weights) @ weights).sum()

    def loop(step):
        return lambda x: lax.scan(step, x, None, length=3)[0].sum()

    def step(c, _):
        return jnp.sin(c @ weights), None

    kept = [_saved(f, x) for f in (jax.checkpoint(two), dots(two), dots(loop(step)), loop(jax.checkpoint(step)))]
    assert kept == [2, 3, 2, 2]  # arguments and weights; weights and both products; one stack of products


def test_common_subexpressions_by_argument():
    def f(x, y):
        return jnp.sin(x) * y

    program = str(jax.make_jaxpr(jax.grad(jax.checkpoint(f, prevent_cse=(True, False))))(1.0, 2.0))
    assert "optimization_barrier" in program
    assert "optimization_barrier" not in str(jax.make_jaxpr(jax.grad(jax.checkpoint(f, prevent_cse=False)))(1.0, 2.0))


def test_a_function_that_is_shared_has_the_name_of_each_caller():
    shared = jax.jit(lambda x: jnp.sin(x) + 1)

    def f(x):
        with jax.named_scope("first"):
            x = shared(x)
        with jax.named_scope("second"):
            return shared(x)

    compiled = jax.jit(f).lower(1.0).compile().as_text()
    text = jax.jit(f).lower(1.0).as_text(debug_info=True)
    assert '"jit(f)/first/jit(<lambda>)"' in text and '"jit(f)/second/jit(<lambda>)"' in text
    assert {"jit(f)/first/jit(<lambda>)/sin", "jit(f)/second/jit(<lambda>)/sin"} <= set(
        re.findall('op_name="([^"]*)"', compiled)
    )


def test_compilations_are_logged_at_the_level_debug():
    heard = []

    class Ear(logging.Handler):
        def emit(self, record):
            heard.append((record.levelno, record.getMessage()))

    root, ear = logging.getLogger("jax"), Ear()
    level = root.level
    root.addHandler(ear)
    try:
        jax.jit(lambda x: x * 3)(1.0)
        assert not heard
        root.setLevel(logging.DEBUG)
        jax.jit(lambda x: x * 4)(1.0)
        assert {n for n, _ in heard} == {logging.DEBUG} and any("is compiled" in m for _, m in heard)
        heard.clear()
        with jax.log_compiles():
            jax.jit(lambda x: x * 5)(1.0)
        assert sum(n == logging.WARNING for n, _ in heard) == 2
    finally:
        root.setLevel(level)
        root.removeHandler(ear)


class _NoReferences:
    __slots__ = ()

    def __call__(self, x):
        return x + 1


def test_callables_without_weak_references_are_compiled():
    f = jax.jit(_NoReferences())
    assert f(1.0) == 2.0 and f(2.0) == 3.0 and f._cache_size() == 1


@pytest.mark.parametrize(
    "how", [{"static_argnames": "y", "donate_argnames": "y"}, {"static_argnums": 1, "donate_argnums": 1}]
)
def test_a_static_argument_cannot_be_donated(how):
    with pytest.raises(ValueError, match="static"):
        jax.jit(lambda x, y: x, **how)(1.0, 2.0)


@pytest.mark.parametrize("argument, name", [(2**40, "x"), ({"a": (1, 2**70)}, r"x\['a'\]\[1\]")])
def test_a_number_that_is_too_large_is_named(argument, name):
    with pytest.raises(OverflowError, match=f"{name}.*too large|too large.*{name}"):
        jax.jit(lambda x: x)(argument)


def test_options_of_the_compiler_from_two_places():
    lowered = jax.jit(lambda x: x * 2, compiler_options={"xla_embed_ir_in_executable": True}).lower(1.0)
    assert lowered.compile(compiler_options={"optimization_level": 9, "memory_fitting_level": 19})(2.0) == 4
    assert lowered.compile(compiler_options={"memory_fitting_level": "O1"})(2.0) == 4
    with pytest.raises(ValueError, match="'O9' is not a valid CompilerEffortLevel; it is one of UNKNOWN"):
        lowered.compile(compiler_options={"memory_fitting_level": "O9"})
    with pytest.raises(TypeError, match="num_partitions takes int, got 'two'"):
        lowered.compile(compiler_options={"num_partitions": "two"})
    with pytest.raises(jax.errors.JaxRuntimeError, match="bogus"):
        lowered.compile(compiler_options={"xla_embed_ir_in_executable": "bogus"})


def test_a_rule_whose_result_has_another_shape_is_refused_with_symbolic_zeros():
    f = jax.custom_vjp(lambda x, y: x * y)
    f.defvjp(
        lambda x, y: (x.value * y.value, (x.value, y.value)),
        lambda kept, ct: (jnp.ones(7), ct * kept[0]),
        symbolic_zeros=True,
    )
    with pytest.raises(ValueError, match=r"7"):
        jax.grad(f)(1.0, 2.0)


def test_symbolic_zeros_have_the_shape_of_one_example():
    shapes = []
    f = jax.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        shapes.extend(np.shape(t) if not hasattr(t, "aval") else t.aval.shape for t in tangents)
        return primals[0] * primals[1], tangents[0] * primals[1]

    f.defjvp(rule, symbolic_zeros=True)
    xs = jnp.arange(3.0)
    out = jax.vmap(lambda x, y: jax.jvp(lambda x: f(x, y), (x,), (1.0,)))(xs, xs)
    np.testing.assert_array_equal(out[1], xs)
    assert shapes == [(), ()]


@pytest.mark.parametrize("value", [3.0, np.ones(2), jnp.ones(2), 2])
def test_derivatives_of_constants(value):
    out, tangent = jax.jvp(lambda x: value, (1.0,), (1.0,))
    np.testing.assert_array_equal(out, value)
    assert isinstance(tangent, jax.Array) or tangent.dtype == jax.dtypes.float0
    assert type(out) is type(value)


def test_factorials_of_series():
    assert jet.fact(5) == 120 and isinstance(jet.fact(5), int)
    np.testing.assert_allclose(jet.fact(jnp.arange(5)), [1, 1, 2, 6, 24], rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jet.fact)(0.5), 0.8862269, rtol=1e-5)


def test_keys_by_the_name_of_their_generator():
    bits = jnp.arange(2, dtype="uint32")
    named = jax.random.wrap_key_data(bits, dtype="threefry2x32")
    assert named.dtype == jax.random.wrap_key_data(bits, impl="threefry2x32").dtype
    with pytest.raises(ValueError, match="not both"):
        jax.random.key(0, impl="rbg", dtype="rbg")
    with pytest.raises(ValueError, match="nothing"):
        jax.random.key(0, dtype="nothing")


def test_collectives_over_two_axes_of_nested_maps():
    b = jnp.arange(16.0).reshape(2, 2, 4)

    def over(x):
        return lax.all_to_all(x, ("i", "j"), 0, 0)

    out = jax.vmap(jax.vmap(over, axis_name="j"), axis_name="i")(b)
    np.testing.assert_array_equal(out.reshape(4, 4), b.reshape(4, 4).T)


@pytest.mark.parametrize("combine, single", [(jnp.polyadd, np.add), (jnp.polysub, np.subtract)])
def test_sums_of_stacks_of_polynomials_have_the_shape_of_the_longer_one(combine, single):
    rows, row = np.array([[5, 7, 9], [8, 6, 4]]), np.array([[2, 3, 1]])
    np.testing.assert_array_equal(combine(row, rows), single(np.vstack([0 * row, row]), rows))
    np.testing.assert_array_equal(combine(rows, np.array([2])), single(rows, [[0] * 3, [2] * 3]))
    np.testing.assert_array_equal(combine(np.ones((3, 3)), np.ones(3)), single(np.ones((3, 3)), 1))
    for x, y in ((np.array([1, 3, 5]), rows), (rows, np.array([1, 3, 5])), (np.array([1, 2]), rows)):
        with pytest.raises(ValueError, match="broadcast"):
            combine(x, y)


@pytest.mark.parametrize("angles", [90, 90.0, jnp.array(1.0), np.float32(1)])
def test_rotations_are_strongly_typed(angles):
    rotation = jax.scipy.spatial.transform.Rotation.from_euler("z", angles, degrees=True)
    assert not rotation.as_matrix().weak_type and not rotation.as_quat().weak_type


def test_counters_of_stateful_generators_are_numbers_of_python():
    from jax.experimental.random import stateful_rng

    generator = stateful_rng(42)
    assert repr(generator._counter) == "Ref(0, dtype=int32, weak_type=True)"
    assert (generator.integers(0, 9, (3,)) != generator.integers(0, 9, (3,))).any()


INITIALIZERS = {
    name: make if name in ("zeros", "ones") else make(2.0) if name == "constant" else make()
    for name, make in ((n, getattr(jax.nn.initializers, n)) for n in dir(jax.nn.initializers))
    if callable(make) and not isinstance(make, type) and not name.startswith("_") and name != "variance_scaling"
}


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", INITIALIZERS)
def test_parameters_begin_where_they_shall_be(name, around):
    init, key = INITIALIZERS[name], jax.random.key(1)
    shape, spec = ((3, 4, 8), P(None, "x", "y")) if name == "delta_orthogonal" else ((4, 8), P("x", "y"))
    mesh = jax.make_mesh((1, 1), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        out = around(lambda key: init(key, shape, np.float32, out_sharding=spec))(key)
        assert out.sharding.spec == spec and jax.typeof(out).sharding.spec == spec
    np.testing.assert_allclose(out, init(key, shape, np.float32), rtol=1e-6, atol=1e-7)
    assert init(key, shape, out_sharding=jax.NamedSharding(mesh, spec)).sharding.spec == spec


def test_types_of_results_say_how_they_are_split():
    mesh = jax.make_mesh((1, 1), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    spec = P("x", "y")
    with jax.set_mesh(mesh):
        made = lambda: jnp.zeros((4, 8), out_sharding=spec)
        for shape in (jax.eval_shape(made), jax.jit(made).eval_shape(), jax.eval_shape(jax.jit(made))):
            assert shape.sharding.spec == spec and isinstance(shape.sharding.mesh, jax.sharding.AbstractMesh)
            again = jax.eval_shape(lambda x: x * 2, shape)
            assert again.sharding == shape.sharding
            assert jax.jit(lambda x: x + 1).lower(shape).compile()(made()).sharding.spec == spec
    assert jax.eval_shape(lambda: jnp.zeros(3)).sharding is None


@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
def test_the_devices_of_an_abstract_mesh_are_those_in_force(kind):
    mesh = jax.make_mesh((1, 1), ("x", "y"), axis_types=(jax.sharding.AxisType[kind],) * 2)
    with jax.set_mesh(mesh):
        place = jax.NamedSharding(jax.sharding.get_abstract_mesh(), P("x", "y"))
        put = jax.sharding.reshard if kind == "Explicit" else lax.with_sharding_constraint
        out = jax.jit(lambda: put(jnp.ones((4, 8)), place))()
        assert out.sharding.mesh == mesh and out.sharding.is_equivalent_to(jax.NamedSharding(mesh, P("x", "y")), 2)


def test_indices_of_einsum_may_be_digits():
    x, w = np.ones((2, 4, 5)), np.arange(300.0).reshape(3, 5, 2, 10)
    np.testing.assert_allclose(jnp.einsum("bsd,3dkh->bs3kh", x, w), np.einsum("bsd,adkh->bsakh", x, w), rtol=1e-6)
    with pytest.raises(ValueError, match="neither a letter nor a digit"):
        jnp.einsum("b#->b", np.ones((2, 2)))


def test_densities_with_parameters_out_of_range_are_nan_in_compiled_programs_too():
    """XLA's compiler for CPUs returns an undefined value for exp of a constant NaN."""
    x = np.float32([1, 2])
    for c in (0.0, 2.0):
        assert np.isnan(jax.scipy.stats.wrapcauchy.pdf(x, c)).all()
        assert np.isnan(jax.jit(jax.scipy.stats.wrapcauchy.pdf)(x, c)).all()


@pytest.mark.parametrize("name", ["print", "log", "callback"])
def test_options_of_debug_functions_may_come_first(name, capsys, caplog):
    seen = []

    def see(x, ordered):
        seen.append(f"{x} {ordered}")

    first = see if name == "callback" else "{x} {ordered}"
    with caplog.at_level("INFO", logger="jax"):
        for wrap in (lambda f: f, jax.jit):
            wrap(lambda x: getattr(jax.debug, name)(ordered=True)(first, x=x, ordered="now"))(3)
            wrap(lambda x: getattr(jax.debug, name)()(first, x=x, ordered="now"))(4)
            jax.effects_barrier()
    printed = {"callback": seen, "print": capsys.readouterr().out.splitlines(), "log": caplog.messages}[name]
    assert printed == ["3 now", "4 now"] * 2
    if name == "callback":

        def effects(ordered):
            call = getattr(jax.debug, name)(ordered=ordered)
            return jax.make_jaxpr(lambda x: call(first, x, ordered=1))(3).effects

        kinds = [type(effect).__name__ for ordered in (True, False) for effect in effects(ordered)]
        assert kinds == ["OrderedDebugEffect", "DebugEffect"]
    for given in (dict(x=3), dict(x=3, ordered=True)):
        with pytest.raises(
            TypeError, match=rf"jax\.debug\.{name} without its first argument takes options only.*\['x'\]"
        ):
            getattr(jax.debug, name)(**given)
    with pytest.raises(TypeError, match="first argument"):
        getattr(jax.debug, name)(ordered=True)(3)


def test_arrays_in_containers_are_printed_as_arrays(capsys):
    x = jnp.float32([0, 1])

    def show(x):
        jax.debug.print("{} {!r} {x} {:.1f}", x, x, x[0], x={"a": (x,)})

    for f in (show, jax.jit(show), lambda x: jax.jit(jax.vmap(show))(x[None])):
        f(x)
        jax.effects_barrier()
    line = f"{np.asarray(x)} {x!r} { ({'a': (x,)}) } 0.0"
    assert "Array" in line and capsys.readouterr().out.splitlines() == [line] * 3


def test_debug_functions_get_values_that_are_no_arrays(capsys):
    class Thing:
        def __repr__(self):
            return "a thing"

    thing = Thing()

    def show(x):
        jax.debug.print("{} {x} {t}", "text", x=x, t=thing)
        return 2.0 * x

    for f in (show, jax.jit(show), jax.grad(show), jax.jit(jax.grad(show)), lambda x: jax.vmap(jax.jit(show))(x[None])):
        f(jnp.float32(1))
        jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == ["text 1.0 a thing"] * 5
    calls = [jax.make_jaxpr(lambda x: jax.debug.print("{} {}", text, x))(1.0).eqns[0] for text in ("a", "a", "b")]  # noqa: B023
    one, same, other = (eqn.params["callback"] for eqn in calls)
    assert one == same != other and hash(one) == hash(same)
    seen = []
    jax.jit(lambda x: jax.debug.callback(lambda *given: seen.append(given), "a", x, {"b": [thing, b"c"]}))(1.0)
    jax.effects_barrier()
    assert seen == [("a", 1.0, {"b": [thing, b"c"]})]


def test_each_call_of_a_library_function_has_its_own_line():
    """They share a traced program, which must not keep the line of the first call."""
    x = jnp.array([jnp.inf, jnp.inf])

    def first(x):
        return jax.nn.log_softmax(x)

    def second(x):
        with jax.named_scope("inside"):
            return jax.nn.log_softmax(x)

    for f, name in ((first, "(first)"), (second, "(second)"), (jax.jit(second), "(second)"), (first, "(first)")):
        error, _ = checkify.checkify(f, errors=checkify.float_checks)(x)
        assert name in error.get() and "primitive: sub" in error.get()
    lines = []
    for f in (first, second):
        text = jax.jit(f).lower(x).as_text(debug_info=True)
        path = "jit(second)/inside" if f is second else "jit(first)"
        (place,) = re.findall(re.escape(f'loc("{path}/jit(log_softmax)/exp"(') + r"(#loc\d+)\)\)", text)
        lines += re.findall(rf'^{place} = loc\(".*":(\d+):', text, re.MULTILINE)
    assert int(lines[1]) - int(lines[0]) == 4  # as above


def test_keys_stay_keys_on_the_way_to_the_host():
    keys = jax.random.split(jax.random.key(0), 2)
    found = jax.device_get({"keys": keys, "x": jnp.ones(2)})
    assert type(found["x"]) is np.ndarray and found["keys"].dtype == keys.dtype
    assert (jax.random.key_data(found["keys"]) == jax.random.key_data(keys)).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.astype(int).astype(float) * x,
        lambda x: x.at[jnp.array([1, 7])].get(mode="fill", fill_value=5.0) ** 2,
        lambda x: lax.ragged_dot(x[None] * x[:, None], jnp.ones((2, 2, 3)), jnp.array([1, 1])),
    ],
    ids=["rounding", "filling", "ragged_dot"],
)
def test_series_are_the_derivatives_of_derivatives(f):
    x, direction = jnp.array([1.5, 2.5]), jnp.array([1.0, -2.0])
    first = lambda x: jax.jvp(f, (x,), (direction,))[1]
    _, terms = jet.jet(f, (x,), ((direction, jnp.zeros(2)),))
    np.testing.assert_allclose(terms[0], first(x), rtol=1e-6)
    np.testing.assert_allclose(terms[1], jax.jvp(first, (x,), (direction,))[1], rtol=1e-6)


@pytest.mark.parametrize("within", ["cond", "loop"])
def test_a_check_inside_control_flow_has_a_key_in_its_message(within):
    key = jax.random.key(0)

    def one(x):
        checkify.check(x > 0, "the key {k} fails", k=key)
        return x

    def f(x):
        if within == "cond":
            return lax.cond(x < 0, one, lambda x: x, x)
        return lax.fori_loop(0, 2, lambda i, x: one(x), x)

    assert checkify.checkify(f)(jnp.float32(-1))[0].get().startswith("the key ")
    assert checkify.checkify(f)(jnp.float32(1))[0].get() is None


def test_jacfwd_refuses_integer_results_by_name():
    with pytest.raises(TypeError, match="jacfwd differentiates results of float dtypes, got int32"):
        jax.jacfwd(lambda x: {"value": x, "place": jnp.argmax(x)})(jnp.ones(3))


@pytest.mark.parametrize("shape", [(4, 5), (3, 6), (1, 2)])
def test_derivatives_of_real_transforms_of_symbolic_length(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    weights = lambda y: jnp.sin(jnp.arange(y.shape[1]) + 1.0)
    forth = lambda x: (jnp.fft.rfft2(x).real * weights(x[:, : x.shape[1] // 2 + 1])).sum()
    back = lambda x: (jnp.fft.irfft2(x + 1j * x * x)[:, :2] ** 2).sum()
    types = jax.ShapeDtypeStruct(jax.export.symbolic_shape("m, n", constraints=["n >= 2"]), jnp.float32)
    for f in (forth, back):
        found = jax.export.export(jax.jit(jax.grad(f)))(types).call(x)
        np.testing.assert_allclose(found, jax.grad(f)(x), atol=1e-5)


def test_a_check_of_a_batch_of_symbolic_size_names_the_element():
    def f(x):
        checkify.check(x > 0, "got {}", x)
        return x

    mapped = lambda x: checkify.checkify(jax.vmap(jax.vmap(f)))(x)[0].leaves
    types = jax.ShapeDtypeStruct(jax.export.symbolic_shape("m, n"), jnp.float32)
    code, value, lane = jax.export.export(jax.jit(mapped))(types).call(jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, -6.0]]))
    assert (int(code), float(value), lane.tolist()) == (1, -6.0, [1, 2])
