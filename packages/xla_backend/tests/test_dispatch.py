"""Eager operations, jit and its stages: values, caching, donation, errors."""

import functools

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax, pytree
from bedrax.batching import vmap
from bedrax.core import config, dtypes, executors, staging
from bedrax.core.array import Array
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.one_program import one_program
from bedrax.core.tracing import Primitive, Tracer, binary, unary
from bedrax.lax import eager_evaluation
from bedrax.lax.primitives.linalg import triangular_solve
from bedrax.numpy_backend.executor import NumpyExecutor
from bedrax.numpy_backend.host_array import HostArray
from bedrax.xla_backend import dispatch
from bedrax.xla_backend.tables import lowering_rules


def put(*values, dtype=np.float32):
    return xla.device_put(np.array(values, dtype))


def test_eager_operations_agree_with_numpy_for_several_dtypes():
    for dtype in (np.float32, np.float16, np.complex64):
        x = np.array([0.25, 1.5, -2.0], dtype)
        got = lax.add(lax.sin(xla.device_put(x)), x)
        assert got.dtype == dtype
        np.testing.assert_allclose(np.asarray(got), np.sin(x) + x, rtol=2e-3 if dtype == np.float16 else 1e-5)
    n = np.array([7, -3], np.int32)
    np.testing.assert_array_equal(np.asarray(lax.add(xla.device_put(n), n)), 2 * n)


def test_weak_types_follow_python_scalars():
    assert lax.sin(2.0).weak_type
    assert not lax.sin(np.float32(2)).weak_type
    f = xla.jit(lambda x: lax.neg(x))
    for _ in range(2):
        assert f(3.0).weak_type
        assert not f(np.float32(3)).weak_type


def test_a_ready_program_is_dropped_with_its_rule():
    prim = Primitive("twice_or_thrice", "elementwise")
    prim.abstract(lambda x: x)
    lowering_rules.add(prim, lambda ctx, x: ctx.emit("stablehlo.add", [x, x]))
    x = put(1.0)
    seen = [float(np.asarray(prim.bind(x))[0]) for _ in range(3)]
    assert prim in executors.ready
    prim.def_impl(lambda x: 3 * np.asarray(x))
    seen.append(float(np.asarray(prim.bind(x))[0]))
    prim.impl = lambda x: 4 * np.asarray(x)
    seen.append(float(np.asarray(prim.bind(x))[0]))
    assert seen == [2, 2, 2, 3, 4]


def test_equal_params_of_different_types_run_separate_programs():
    x = put(2.0)
    for exponent in (True, 1, 2, np.int64(2), 2, True):
        assert float(np.asarray(lax.integer_pow_p.bind(x, y=exponent))[0]) == 2.0 ** int(exponent)
    for dtype in (np.dtype(np.int32), np.dtype(np.float16)):  # `marshal` does not support them
        for _ in range(2):
            assert lax.convert_element_type(x, dtype).dtype == dtype


def test_another_executor_has_nothing_ready():
    x = np.float32(0.5)
    compiled = [lax.sin(x) for _ in range(2)]
    before = executors.active
    try:
        executors.install(NumpyExecutor())
        assert type(lax.sin(x)) is HostArray
    finally:
        executors.install(before)
    assert type(lax.sin(x)) is type(compiled[0])


def _direct_negation():
    """A function of one operation that has run, and its primitive."""
    prim = lax.neg_p
    function = unary(prim, frozenset(dtypes.all_dtypes), lambda x: x)
    for _ in range(2):  # the first evaluation of a process imports what it needs
        function(put(1, 2))
    assert type(put(1, 2)) in prim.direct
    return prim, function


def test_a_direct_operation_on_constants_is_seen_by_the_trace():
    _, function = _direct_negation()
    x = put(1, 2)
    jaxpr = staging.make_jaxpr(lambda y: (function(x), function(np.float32(2)), function(y)))(x)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["neg"] * 3
    both = binary(lax.add_p)
    both(x, x)
    jaxpr = staging.make_jaxpr(lambda y: (both(x, np.float32(2)), both(x, y), both(y, x)))(x)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["add"] * 3
    np.testing.assert_array_equal(vmap(lambda y: both(function(x), y))(put(1, 2)), [[0, -1], [1, 0]])


def test_a_direct_operation_is_evaluated_eagerly_while_a_function_is_traced():
    _, function = _direct_negation()
    x = put(1, 2)

    def traced(y):
        with eager_evaluation.ensure_compile_time_eval():
            known = [function(x), lax.neg_p.bind(x), function(np.float32(2))]
        assert not any(isinstance(k, Tracer) for k in known)
        with eager_evaluation.eval_context():
            assert not isinstance(function(x), Tracer)
        return function(y)

    assert [eqn.primitive.name for eqn in staging.make_jaxpr(traced)(x).eqns] == ["neg"]


def test_a_direct_operation_is_observed_and_goes_to_the_executor_that_evaluates():
    prim, function = _direct_negation()
    seen = []

    def observer(prim, args, params):
        seen.append(prim.name)

    executors.observe(observer)
    try:
        function(put(1, 2))
        function(put(1, 2))
    finally:
        executors.observe(observer, False)
    assert seen == ["neg", "neg"]
    function(put(1, 2))
    assert prim.direct
    before = executors.get()
    executors.install(NumpyExecutor())
    try:
        assert type(function(put(1, 2))) is HostArray
    finally:
        executors.install(before)


def test_a_direct_operation_ends_with_its_rule_and_with_the_caches():
    double = Primitive("double")
    double.abstract(lambda aval: aval)
    lowering_rules.add(double, lambda ctx, x: lowering_rules[lax.add_p](ctx, x, x))
    function = unary(double, frozenset(dtypes.all_dtypes), lambda x: x)
    assert [np.asarray(function(put(3)))[0] for _ in range(3)] == [6, 6, 6] and double.direct
    xla.clear_caches()
    assert not double.direct
    assert np.asarray(function(put(3)))[0] == 6 and double.direct
    double.def_impl(lambda x: "own")
    assert function(put(3)) == "own"


def test_jit_traces_once_per_signature():
    seen = []

    def f(x, y):
        seen.append((x.shape, x.dtype))
        return {"sum": lax.add(x, y), "pair": (x, None)}

    g = xla.jit(f)
    x = put(1, 2)
    for _ in range(3):
        out = g(x, x)
        np.testing.assert_array_equal(np.asarray(out["sum"]), [2, 4])
        assert out["pair"][1] is None
    assert len(seen) == 1
    g(put(1, 2, 3), put(1, 2, 3))
    g(np.ones(2, np.float32), x)  # a NumPy array of a known type: no new trace
    g(HostArray(np.ones(2, np.float32)), x)
    assert len(seen) == 2


def test_jit_keyword_and_static_arguments():
    calls = []

    def f(x, n, *, flag=False):
        calls.append((n, flag))
        return lax.mul(x, np.float32(n)) if flag else x

    g = xla.jit(f, static_argnums=1, static_argnames="flag")
    assert float(g(np.float32(2), 3, flag=True)) == 6
    assert float(g(np.float32(2), 3, flag=True)) == 6
    assert float(g(np.float32(2), 4, flag=True)) == 8
    assert float(g(np.float32(2), 4)) == 2
    assert calls == [(3, True), (4, True), (4, False)]
    with pytest.raises(ValueError, match="[Nn]on-hashable"):
        g(np.float32(2), [1])


def test_unused_arguments_and_large_constants():
    constant = xla.device_put(np.arange(100, dtype=np.float32))
    f = xla.jit(lambda a, unused, b: lax.sub(lax.add(a, constant), b))
    a, b = np.full(100, 5, np.float32), np.full(100, 2, np.float32)
    for args in ((a, a, b), (xla.device_put(a), b, xla.device_put(b))):
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(f(*args)), np.arange(100) + 3)
    text = f.lower(a, a, b).as_text()
    assert "%arg1" in text
    assert "%arg2" not in text
    kept = xla.jit(lambda a, unused: a, keep_unused=True).lower(a, b).as_text()
    assert "%arg1" in kept


def test_donation_deletes_the_argument():
    f = xla.jit(lambda a, b: (lax.add(a, b), lax.mul(b, b)), donate_argnums=0)
    b = put(1, 2)
    for _ in range(2):
        a = put(3, 4)
        np.testing.assert_array_equal(np.asarray(f(a, b)[0]), [4, 6])
        assert a.is_deleted()
        with pytest.raises(RuntimeError, match="deleted"):
            lax.sin(a)
        with pytest.raises(RuntimeError, match=r"type float32\[2\] is used after it was deleted"):
            np.asarray(a)
    assert not b.is_deleted()
    assert "tf.aliasing_output = 0" in f.lower(b, b).as_text()
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        xla.jit(lambda a: lax.reduce_sum(a, (0,)), donate_argnums=0)(put(1, 2))


def products(xs, **options):
    return lax.scan(lambda c, x: (lax.add(c, x), lax.mul(c, x)), np.float32(1), xs, **options)


def test_control_flow():
    power = xla.jit(
        lambda a: lax.while_loop(lambda s: lax.lt(s[0], 10), lambda s: (lax.add(s[0], 1), lax.mul(s[1], a)), (0, a))
    )
    i, value = power(np.float32(2))
    assert (int(i), float(value)) == (10, 2.0**11)
    xs = np.arange(7, dtype=np.float32)
    for reverse in (False, True):
        want, c = np.zeros(7, np.float32), np.float32(1)
        for k in reversed(range(7)) if reverse else range(7):
            want[k] = c * xs[k]
            c = c + xs[k]
        for unroll in (1, 2, 3, 7, True):
            options = dict(reverse=reverse, unroll=unroll)
            carry, ys = xla.jit(functools.partial(products, **options))(xs)
            assert float(carry) == c
            np.testing.assert_array_equal(np.asarray(ys), want)
    _, empty = xla.jit(lambda xs: lax.scan(lambda c, x: (c, x), np.float32(0), xs))(np.zeros((0, 3), np.float32))
    assert empty.shape == (0, 3)
    choose = xla.jit(lambda p, a: lax.cond(p, lax.sin, lax.cos, a))
    np.testing.assert_allclose(choose(True, xs), np.sin(xs), rtol=1e-6)
    np.testing.assert_allclose(choose(False, xs), np.cos(xs), rtol=1e-6)
    pick = xla.jit(lambda i, a: lax.switch(i, [lax.sin, lax.cos, lax.neg], a))
    np.testing.assert_array_equal(np.asarray(pick(7, xs)), -xs)


def test_nested_jit_is_lowered_once():
    inner = xla.jit(lambda x: lax.sin(lax.sin(x)))

    def f(x):
        return lax.add(inner(x), inner(inner(x)))

    text = xla.jit(f).lower(np.ones(3, np.float32)).as_text()
    assert text.count("stablehlo.sine") == 2
    assert text.count("call @") == 3
    x = np.float32(0.5)
    once = np.sin(np.sin(x))
    np.testing.assert_allclose(float(xla.jit(f)(x)), once + np.sin(np.sin(once)), rtol=1e-6)


def test_a_cached_call_is_still_recorded_while_staging():
    f = xla.jit(lambda x: lax.sin(x))
    x = put(1, 2)
    f(x)
    f(x)
    jaxpr = staging.make_jaxpr(lambda: f(x))()
    assert [e.primitive.name for e in jaxpr.eqns] == ["jit"]
    np.testing.assert_allclose(np.asarray(f(x)), np.sin([1, 2]), rtol=1e-6)


def test_x64_and_disable_jit_take_effect_on_cached_functions():
    f = xla.jit(lambda x: lax.sin(x))
    x = np.ones(2)
    f(x), f(x)
    assert f(x).dtype == np.float32
    with config.enable_x64(True):
        assert f(x).dtype == np.float64
        assert lax.sin(2.0).dtype == np.float64
    assert f(x).dtype == np.float32
    ran = []
    g = xla.jit(lambda x: (ran.append(1), x)[1])
    g(1.0), g(1.0)
    with config.disable_jit(True):
        g(1.0), g(1.0)
        assert float(lax.sin(np.float32(0))) == 0
    assert len(ran) == 3


def test_debug_nans_names_the_operation():
    x = put(-1.0, 1.0)
    f = xla.jit(lambda x: lax.add(lax.log(x), x))
    f(x), f(x)
    with config.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in log"):
            f(x)
        with pytest.raises(FloatingPointError, match="encountered in log"):
            lax.log(x)
    assert np.isnan(np.asarray(f(x))[0])


def _logarithm(x):
    """The logarithm of positive numbers, 0 for others."""
    return lax.cond(lax.gt(x, np.float32(0)), lax.log, lambda x: lax.mul(x, np.float32(0)), x)


def test_debug_nans_reports_only_nans_that_reach_a_result():
    """Under `vmap`, `cond` computes both branches. A NaN of the one that is not selected is not a fault of the program."""
    x = put(-1.0, 4.0)
    chosen = lambda x: vmap(_logarithm)(x)

    def with_root(x):
        y = chosen(x)
        root = lax.sqrt(x)
        return lax.add(y, root)

    def in_calls(x):
        return xla.jit(lambda x: lax.neg(xla.jit(with_root)(x)))(x)

    with config.debug_nans(True):
        np.testing.assert_allclose(np.asarray(xla.jit(chosen)(x)), [0, np.log(4)], rtol=1e-6)
        for f in (with_root, in_calls):
            with pytest.raises(FloatingPointError, match="encountered in sqrt") as caught:
                xla.jit(f)(x)
            line = with_root.__code__.co_firstlineno + 2
            assert f"{__file__}:{line} (with_root)" in str(caught.value)
        with pytest.raises(FloatingPointError, match="encountered in log"):  # eagerly, each operation is looked at
            chosen(x)
        assert float(_logarithm(np.float32(-1))) == 0
    with config.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in exp"):
        xla.jit(lambda x: lax.mul(lax.exp(lax.mul(x, np.float32(1000))), x))(x)


def test_stages():
    f = xla.jit(lambda x, y: {"a": lax.add(x, np.float32(1))})
    x = np.ones(3, np.float32)
    lowered = f.lower(x, y=ShapeDtypeStruct((2,), np.int32))
    assert "result['a']" in lowered.as_text()
    assert lowered.as_text("hlo").startswith("HloModule")
    assert lowered.cost_analysis()["flops"] == 3
    assert lowered.out_info["a"].shape == (3,)
    compiled = lowered.compile()
    np.testing.assert_array_equal(np.asarray(compiled(x, y=np.zeros(2, np.int32))["a"]), x + 1)
    assert "HloModule" in compiled.as_text()
    assert compiled.memory_analysis().output_size_in_bytes == 12
    assert compiled.cost_analysis()["flops"] == 3
    assert compiled.output_shardings["a"].device_set == set(xla.devices()[:1])
    with pytest.raises(TypeError, match="args: expected 1 positional|kwargs: expected the structure"):
        compiled(x)
    with pytest.raises(TypeError, match=r"'x': expected float32\[3\], got float32\[4\]"):
        compiled(np.ones(4, np.float32), y=np.zeros(2, np.int32))
    with pytest.raises(TypeError, match="takes arrays, got the traced value"):
        xla.jit(lambda x: compiled(x, y=np.zeros(2, np.int32)))(x)
    assert f.eval_shape(x, x)["a"].dtype == np.float32
    assert f.trace(x, x).fun_name == "<lambda>"
    with pytest.raises(ValueError, match="dialect"):
        lowered.as_text("english")


def test_errors_of_arguments():
    f = xla.jit(lambda x: x)
    with pytest.raises(TypeError, match="str"):
        f("a")
    with pytest.raises(OverflowError):
        f(2**40)

    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        f(np.array([None, 1]))
    with pytest.raises(TypeError, match="numbers and bools"):
        lax.sin(np.array(["a"]))

    class NotRegistered:
        pass

    with pytest.raises(TypeError, match="NotRegistered"):
        f(NotRegistered())


def test_missing_rule_names_primitive_and_file():
    from bedrax.core.tracing import Primitive

    prim = Primitive("frobnicate", "elementwise")
    prim.abstract(lambda a: a)
    with pytest.raises(NotImplementedError, match=r"(?s)frobnicate.*compilation.*lowering\.elementwise"):
        prim.bind(put(1.0))


def test_results_are_arrays():
    assert isinstance(xla.jit(lambda x: x)(1.0), Array)
    assert isinstance(lax.sin(1.0), Array)


def test_compilation_goes_through_a_module_attribute(monkeypatch):
    from bedrax.xla_backend import compile as compile_module

    seen = []
    original = compile_module.backend_compile_and_load

    def spy(*args, **kwargs):
        seen.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(compile_module, "backend_compile_and_load", spy)
    f = xla.jit(lambda x: lax.sin(lax.neg(x)))
    f(1.0), f(1.0)
    assert len(seen) == 1


def test_clear_caches_drops_traces():
    traced = []
    f = xla.jit(lambda x: (traced.append(1), lax.sin(x))[1])
    f(1.0), f(1.0)
    xla.clear_caches()
    f(1.0), f(1.0)
    assert len(traced) == 2
    f.clear_cache()
    f(1.0)
    assert len(traced) == 3


def test_compiled_functions_take_no_static_arguments():
    f = xla.jit(lambda x, n: lax.mul(x, np.float32(n)), static_argnums=1)
    compiled = f.lower(np.ones(2, np.float32), 3).compile()
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(compiled(put(1, 2))), [3, 6])
    with pytest.raises(TypeError, match="expected 1 positional arguments, got 2"):
        compiled(put(1, 2), 3)


def test_locations_name_the_users_line():
    text = xla.jit(lambda x: lax.sin(x)).lower(1.0).as_text(debug_info=True)
    assert "test_dispatch.py" in text
    assert '"jit(<lambda>)/sin"' in text


def test_arguments_have_their_names():
    def f(alpha, unused, beta):
        return lax.mul(alpha, beta["w"])

    text = xla.jit(f).lower(1.0, 2.0, {"w": 3.0}).as_text(debug_info=True)
    assert 'loc("alpha")' in text and "loc(\"beta['w']\")" in text and "unused" not in text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_triangular_systems_of_small_floats(dtype):
    a = (np.eye(3) + np.tril(np.ones((3, 3)))).astype(dtypes.explicit_dtype(dtype))
    x = np.arange(6.0).reshape(3, 2)
    solve = lambda a, b: triangular_solve(a, b, left_side=True, lower=True)
    got = xla.jit(solve)(a, (a.astype(float) @ x).astype(a.dtype))
    assert got.dtype == a.dtype
    np.testing.assert_allclose(np.asarray(got).astype(float), x, atol=0.05)


def test_constants_do_not_follow_later_writes():
    constant = np.arange(100, dtype=np.float32)
    f = xla.jit(lambda x: lax.add(x, constant))
    x = np.zeros(100, np.float32)
    f(x), f(x)
    constant[:] = -1
    np.testing.assert_array_equal(np.asarray(f(x)), np.arange(100))


def test_jitted_functions_and_their_programs_are_freed():
    import gc
    import weakref

    def make():
        g = xla.jit(lambda x: lax.sin(x))
        g(1.0), g(1.0)
        return weakref.ref(g._jitted)

    ref = make()
    gc.collect()
    assert ref() is None


def test_methods_partials_and_unhashable_callables():
    class Model:
        k = np.float32(2)

        @functools.partial(xla.jit, static_argnums=0)
        def scale(self, x):
            return lax.mul(x, self.k)

    model = Model()
    assert [float(model.scale(np.float32(v))) for v in (3, 4)] == [6, 8]
    assert float(xla.jit(functools.partial(lax.add, np.float32(1)))(2.0)) == 3

    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return lax.neg(x)

    assert float(xla.jit(Unhashable())(2.0)) == -2
    f = xla.jit(lambda x, *, y: lax.sub(x, y), donate_argnames="y")
    y = put(1, 2)
    np.testing.assert_array_equal(np.asarray(f(np.ones(2, np.float32), y=y)), [0, -1])
    assert y.is_deleted()


def test_threads():
    import threading

    f = xla.jit(lambda x: lax.sin(lax.mul(x, x)))
    failures = []

    def work(n):
        try:
            for k in range(20):
                x = np.full(n % 3 + 1, k, np.float32)
                np.testing.assert_allclose(np.asarray(f(x)), np.sin(x * x), rtol=1e-5, atol=1e-6)
                lax.add(x, x)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_closure_convert_makes_constants_arguments():
    const = np.arange(3, dtype=np.float32)
    traced = xla.jit(lambda x, *, k: lax.add(lax.mul(x, lax.sin(const)), k["a"])).trace(const, k={"a": const})
    consts, fun = traced.closure_convert()
    expected = const * np.sin(const) + const
    np.testing.assert_allclose(fun(consts, const, k={"a": const}), expected, rtol=1e-6)
    consts, again = traced.with_consts_as_arg()
    assert not again.jaxpr.consts and again.fun_name == traced.fun_name and again.effects == frozenset()
    np.testing.assert_allclose(again.lower().compile()(consts, const, k={"a": const}), expected, rtol=1e-6)
    with pytest.raises(TypeError, match="was traced for the arguments"):
        fun(consts, const)


@pytree.register_pytree_node_class
class Jittable:
    """Numbers and text are a part of the structure, as in the classes of Distrax."""

    def __init__(self, name, values):
        self.name, self.values = name, values

    def tree_flatten(self):
        known = isinstance(self.values, int | float)
        return [] if known else [self.values], (self.name, self.values if known else None)

    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(data[0], children[0] if children else data[1])


def test_classes_of_results_may_read_their_leaves():
    more = xla.jit(lambda x: Jittable(x.name, lax.add(x.values, np.float32(1))))
    for start in range(3):  # compiled, and run again
        out = more(Jittable("a", np.full(5, start, np.float32)))
        assert out.name == "a" and np.asarray(out.values).tolist() == [start + 1] * 5
    assert "result[<flat index 0>]" in more.lower(out).as_text()


@pytest.mark.parametrize("flag", [config.debug_nans, config.debug_infs])
def test_debug_options_check_functions_of_several_operations_as_wholes(flag):
    """A value inside the function, which it masks, is not a fault of the user's program, also under transformations."""

    @one_program
    def reciprocal_or_zero(x):
        zero = lax.eq(x, np.float32(0))
        inside = lax.div(x, lax.mul(x, x))  # NaN at 0
        return lax.select(zero, x, lax.select(zero, lax.div(np.float32(1), x), inside))

    def at_trace_time(x):
        with eager_evaluation.ensure_compile_time_eval():
            constant = reciprocal_or_zero(np.float32(0))
        return lax.add(x, constant)

    x = put(0.0, 4.0)
    users = {config.debug_nans: lambda x: lax.div(x, x), config.debug_infs: lambda x: lax.div(np.float32(1), x)}[flag]
    with flag(True):
        assert np.asarray(vmap(reciprocal_or_zero)(x)).tolist() == [0, 0.25]
        assert np.asarray(xla.jit(at_trace_time)(x)).tolist() == [0, 4]
        with pytest.raises(FloatingPointError, match="encountered in div"):
            vmap(users)(x)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_many_arrays_are_joined_by_small_programs(monkeypatch, axis):
    """XLA's time to compile a program grows with the square of the number of its operands."""
    sizes = []

    def counted(jaxpr, args, *others, **options):
        sizes.append(len(args))
        return first_run(jaxpr, args, *others, **options)

    first_run = dispatch.first_run
    monkeypatch.setattr(dispatch, "first_run", counted)
    rows = [np.full((2, 3), i, np.float32) for i in range(700)]
    for _ in range(4):  # the first calls may be evaluated by NumPy
        made = lax.stack([xla.device_put(x) for x in rows], axis=axis)
        assert np.array_equal(made, np.stack(rows, axis))
    assert max(sizes) == 256
    made = lax.concatenate([xla.device_put(x) for x in rows], dimension=axis % 2)
    assert np.array_equal(made, np.concatenate(rows, axis % 2)) and max(sizes) == 256
    with pytest.raises(ValueError, match="stack: the arrays have one shape"):
        lax.stack([xla.device_put(x) for x in [*rows, np.zeros(3, np.float32)]], axis=0)
