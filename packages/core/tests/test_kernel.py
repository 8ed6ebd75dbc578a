"""The kernel with three toy primitives: `add` and `neg` compute, `apply` holds a program. No layer above is needed."""

import enum
import gc
import pickle
import sys
import threading
import types
import weakref

import numpy as np
import pytest

from bedrax import pytree
from bedrax.core import (
    avals,
    caches,
    config,
    dead_code,
    dtypes,
    executors,
    facts,
    names,
    passes,
    signatures,
    staging,
    tables,
    tracing,
)
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.columns import Column
from bedrax.core.errors import JaxprTypeError, LeakedTracerError
from bedrax.core.ir import Eqn, Jaxpr, Var, eval_jaxpr
from bedrax.core.jitting import holds_program
from bedrax.core.tracing import Primitive, Trace, Tracer, current, entered
from bedrax.core.typecheck import check_jaxpr

add_p = Primitive("toy_add")
add_p.def_impl(np.add)
neg_p = Primitive("toy_neg")
neg_p.def_impl(np.negative)
apply_p = holds_program("toy_apply")
apply_p.def_impl(lambda *args, jaxpr, **_: eval_jaxpr(jaxpr, jaxpr.consts, *args))


@add_p.def_abstract_eval
def _add_type(x, y):
    if x.shape != y.shape:
        raise TypeError(f"toy_add: shapes {x.shape} and {y.shape} differ")
    return x


neg_p.def_abstract_eval(lambda x: x)

scalar = ShapedArray((), np.dtype(np.float32))
vector = ShapedArray((3,), np.dtype(np.float32))
one = np.float32(1)


def _double(x):
    return [add_p.bind(x, x)]


class Counted(Tracer):
    __slots__ = ("value",)

    def __init__(self, trace, value):
        self._trace, self.value = trace, value

    aval = property(lambda self: aval_of(self.value))


class CountTrace(Trace):
    """Counts the operations on its tracers."""

    __slots__ = ("count",)

    def __init__(self, parent):
        super().__init__(parent)
        self.count = 0

    def process(self, prim, args, params):
        mine = [type(x) is Counted and x._trace is self for x in args]
        self.count += any(mine)
        with tracing.set_trace(self.parent):
            out = prim.bind(*(x.value if m else x for x, m in zip(args, mine, strict=True)), **params)
        if not any(mine):
            return out
        return [Counted(self, x) for x in out] if prim.multiple_results else Counted(self, out)


# ---- evaluating and entering


def test_a_primitive_with_an_implementation_needs_no_executor():
    assert add_p.bind(one, one) == 2


def test_entered_is_current_inside_and_dead_afterwards():
    trace = CountTrace(current.trace)
    with entered(trace) as same:
        assert same is trace and current.trace is trace and trace.alive
        out = neg_p.bind(add_p.bind(Counted(trace, one), one))
        assert add_p.bind(one, one) == 2  # the operation has no tracer of the trace
    assert current.trace is tracing.eval_trace and not trace.alive
    assert trace.count == 2 and out.value == -2


def test_entered_ends_when_an_error_leaves():
    trace = CountTrace(current.trace)
    with pytest.raises(ZeroDivisionError), entered(trace):
        1 / 0
    assert current.trace is tracing.eval_trace and not trace.alive


@pytest.fixture
def dispatcher(monkeypatch):
    """Notifications to a backend that dispatches calls outside Python."""
    state = [None]

    def swap(new):
        old, state[0] = state[0], new
        return old

    monkeypatch.setattr(executors, "must_see_calls", swap)
    return state


def test_a_recording_trace_notifies_the_dispatcher(dispatcher):
    seen = []

    def fun(x):
        seen.append(dispatcher[0])
        return _double(x)

    staging.program_of(fun, [scalar])
    staging.eval_shape(lambda x: fun(x)[0], one)
    assert seen == [True, True] and dispatcher == [None]


def test_a_trace_of_its_own_values_only_does_not_notify_the_dispatcher(dispatcher):
    class Follows(CountTrace):
        sees_constants = False

    with entered(Follows(current.trace)):
        assert dispatcher == [None]
    with entered(CountTrace(current.trace)):
        assert dispatcher == [True]
    assert dispatcher == [None]


def test_leaks_are_reported_only_under_check_tracer_leaks():
    kept = []

    def leaks(x):
        kept.append(x)
        return _double(x)

    staging.program_of(leaks, [scalar])
    with config.check_tracer_leaks(True):
        staging.program_of(_double, [scalar])
        with pytest.raises(LeakedTracerError, match=r"leaked from a StagingTrace(.|\n)*held by a list"):
            staging.program_of(leaks, [scalar])
        with pytest.raises(LeakedTracerError, match=r"leaked from a (Shape|Staging)Trace"):
            staging.eval_shape(lambda x: leaks(x)[0], one)
        assert current.watched is None
        kept.clear()

        def nested(x):
            staging.program_of(_double, [scalar])  # its trace is checked when it ends
            return _double(x)

        staging.program_of(nested, [scalar])


# ---- the state of tracing as a value


def test_states_of_one_trace_are_equal_and_of_two_are_not():
    states = []

    def fun(x):
        a, b = tracing.get_opaque_trace_state(), tracing.get_opaque_trace_state()
        assert a == b and hash(a) == hash(b)
        states.append(a)
        return [x]

    outside = tracing.get_opaque_trace_state()
    for _ in range(100):
        staging.program_of(fun, [scalar])  # a trace may be made where a dead one was
    assert len(set(states)) == 100 and outside not in states
    assert outside == tracing.get_opaque_trace_state()


def test_a_state_holds_no_trace_alive():
    trace = CountTrace(current.trace)
    with entered(trace):
        state = tracing.get_opaque_trace_state()
    ref = weakref.ref(trace)
    del trace
    gc.collect()
    assert ref() is None and state == state and state != tracing.get_opaque_trace_state()


# ---- programs


def test_the_auxiliary_result_of_a_traced_function_is_returned():
    program, aux = staging.trace_to_jaxpr(lambda x: (_double(x), {"anything": 7}), [scalar])
    assert aux == {"anything": 7}
    assert [e.primitive for e in program.eqns] == [add_p]
    assert eval_jaxpr(program, program.consts, one) == [2]


def test_types_only_records_types_and_no_equations():
    program, aux = staging.trace_to_jaxpr(lambda x: (_double(x), "aux"), [vector], types_only=True)
    assert program.out_avals == [vector] and not program.eqns and aux == "aux"
    out = staging.eval_shape(lambda d: {"y": neg_p.bind(d["x"])}, {"x": np.zeros(3, np.float32)})
    assert out["y"].shape == (3,) and out["y"].dtype == np.float32


def test_an_operation_on_constants_is_recorded_too():
    program = staging.program_of(lambda x: [add_p.bind(x, neg_p.bind(one))], [scalar])
    assert [e.primitive for e in program.eqns] == [neg_p, add_p]


def test_nested_tracing_closes_over_the_outer_tracer():
    inner = []

    def outer(x):
        program = staging.program_of(lambda y: [add_p.bind(x, y)], [scalar])
        inner.append(program)
        program, consts = staging.close_over(program)
        return apply_p.bind(*consts, x, jaxpr=program)

    program = staging.program_of(outer, [scalar])
    assert len(inner[0].constvars) == 1 and [e.primitive for e in program.eqns] == [apply_p]
    assert eval_jaxpr(program, (), one) == [2]


def test_threads_have_separate_traces():
    seen = []
    with entered(CountTrace(current.trace)):
        worker = threading.Thread(target=lambda: seen.append(current.trace))
        worker.start()
        worker.join()
    assert seen == [tracing.eval_trace]


# ---- the type checker


def _ill_typed() -> Jaxpr:
    x, y = Var(scalar), Var(vector)
    return Jaxpr([x], [y], [Eqn(neg_p, [x], [y], {})])


def test_derived_programs_are_checked_under_enable_checks():
    derive = facts.cached(lambda program, n: (n, [_ill_typed()]))
    program = staging.program_of(_double, [scalar])
    derive(program, 1)
    with config.enable_checks(True), pytest.raises(JaxprTypeError, match="declares results of types f32"):
        derive(program, 2)


def _eqn_program(eqn):
    return Jaxpr(eqn.invars, eqn.outvars, [eqn])


def test_operands_and_results_have_the_types_of_the_program():
    program = staging.program_of(_double, [scalar])
    x, y, v = Var(scalar), Var(scalar), Var(vector)
    check_jaxpr(_eqn_program(Eqn(apply_p, [x], [y], {"jaxpr": program})))
    with pytest.raises(JaxprTypeError, match=r"f32\[3\] for argument 0 of a program, which is of type f32\[\]"):
        check_jaxpr(_eqn_program(Eqn(apply_p, [v], [y], {"jaxpr": program})))
    with pytest.raises(JaxprTypeError, match="2 operands for a program that takes 1"):
        check_jaxpr(_eqn_program(Eqn(apply_p, [x, v], [y], {"jaxpr": program})))
    with pytest.raises(JaxprTypeError, match="declares results of types f32"):
        check_jaxpr(_eqn_program(Eqn(apply_p, [x], [v], {"jaxpr": program})))
    with pytest.raises(JaxprTypeError, match="declares results"):  # inside
        check_jaxpr(_eqn_program(Eqn(apply_p, [x], [v], {"jaxpr": _ill_typed()})))


# A loop: consts, carry, slices -> carry, stacked.
loop_p = Primitive("toy_loop", multiple_results=True)


@loop_p.def_abstract_eval
def _loop_types(*avals, body, consts, carry, rounds):
    out = body.out_avals
    return out[:carry] + [a.update(shape=(rounds, *a.shape)) for a in out[carry:]]


@tables.programs.rule(loop_p)
def _loop_programs(params):
    body, consts, carry = params["body"], params["consts"], params["carry"]
    return [
        tables.calls(body)._replace(
            slices=len(body.invars) - consts - carry,
            stacks=len(body.outvars) - carry,
            rounds=params["rounds"],
            carries=tuple((consts + i, i) for i in range(carry)),
        )
    ]


@tables.with_programs.rule(loop_p)
def _smaller_loop(params, smaller, operands, results):
    consts, carry = tables.count(operands, tables.CONSTANT), tables.count(results, tables.CARRY)
    return {**params, "body": smaller[0], "consts": consts, "carry": carry}


def _loop_eqn(operands, **params):
    def body(const, a, b, x):
        return [add_p.bind(a, const), add_p.bind(b, a), neg_p.bind(x)]

    program = staging.program_of(body, [scalar] * 4)
    results = [Var(scalar), Var(scalar), Var(vector)]
    return Eqn(loop_p, operands, results, {"body": program, "consts": 1, "carry": 2, "rounds": 3, **params})


def test_loops_are_checked():
    good = [Var(scalar), Var(scalar), Var(scalar), Var(vector)]
    check_jaxpr(_eqn_program(_loop_eqn(good)))
    with pytest.raises(JaxprTypeError, match="for argument 3 of a program"):
        check_jaxpr(_eqn_program(_loop_eqn([*good[:3], Var(scalar)])))
    with pytest.raises(JaxprTypeError, match="for argument 1 of a program"):
        check_jaxpr(_eqn_program(_loop_eqn([good[0], Var(vector), *good[2:]])))
    with pytest.raises(JaxprTypeError, match=r"for argument 3 of a program, which is of type f32\[7\]"):
        eqn = _loop_eqn(good, rounds=7)
        eqn.outvars[2] = Var(vector.update(shape=(7,)))
        check_jaxpr(_eqn_program(eqn))


@pytest.mark.parametrize(
    "used, operands, results",
    [
        ([True, False, False], 2, 1),  # const and a
        ([False, True, False], 3, 2),  # b reads a, which reads const
        ([False, False, True], 1, 1),  # the stacked result needs the slices only
    ],
)
def test_dead_code_follows_from_the_declared_programs(used, operands, results):
    eqn = _loop_eqn([Var(scalar), Var(scalar), Var(scalar), Var(vector)])
    small, used_in = dead_code.dce_with(_eqn_program(eqn), used)
    (left,) = small.eqns
    assert len(left.invars) == operands == sum(used_in) and len(left.outvars) == results
    check_jaxpr(small)


def test_a_primitive_that_declares_nothing_keeps_its_programs():
    held_p = Primitive("toy_held", multiple_results=True)
    held_p.def_abstract_eval(lambda x, **_: [x, x])
    x = Var(scalar)
    eqn = Eqn(held_p, [x], [Var(scalar), Var(scalar)], {"program": staging.program_of(_double, [scalar])})
    small, _ = dead_code.dce_with(_eqn_program(eqn), [True, False])
    assert small.eqns == [eqn]
    assert [p for p in passes.programs_in(eqn)] == [eqn.params["program"]]
    assert passes.called_program(held_p, eqn.params) is None


def test_effects_are_those_of_the_programs_that_an_equation_holds():
    tap_p = Primitive("toy_tap")
    tap_p.def_effectful_abstract_eval(lambda x: (x, {"seen"}))
    inner = staging.program_of(lambda x: [tap_p.bind(x)], [scalar])
    outer = staging.program_of(lambda x: apply_p.bind(x, jaxpr=inner), [scalar])
    assert inner.effects == outer.effects == {"seen"}
    assert dead_code.dce_with(outer, [False])[0].effects == {"seen"}


def test_inlining_a_call_leaves_its_equations():
    inner = staging.program_of(_double, [scalar])
    outer = staging.program_of(lambda x: [neg_p.bind(*apply_p.bind(x, jaxpr=inner))], [scalar])
    flat = passes.inline(outer, frozenset({apply_p}))
    assert [e.primitive for e in flat.eqns] == [add_p, neg_p]
    check_jaxpr(flat)
    assert passes.called_program(apply_p, {"jaxpr": inner}) is inner


def test_named_axes_of_a_program_are_those_that_its_operations_name():
    over_p = Primitive("toy_over")
    over_p.def_abstract_eval(lambda x, **_: x)
    tables.named_axes.add(over_p, lambda params: params["axes"])
    inner = staging.program_of(lambda x: [over_p.bind(x, axes=("i", "j"))], [scalar])
    outer = staging.program_of(lambda x: apply_p.bind(x, jaxpr=inner), [scalar])
    assert passes.axes_of(outer) == {"i", "j"}


# ---- facts of programs


def test_a_fact_is_derived_once_also_when_it_is_none():
    calls = []

    @facts.cached
    def nothing(program, n):
        calls.append(n)

    program = staging.program_of(_double, [scalar])
    assert [nothing(program, 1), nothing(program, 1), nothing(program, 2)] == [None] * 3
    assert calls == [1, 2]
    assert facts.fact(program, "mine", lambda: 5) == facts.fact(program, "mine", lambda: 6) == 5


# ---- values, names, attributes


def test_numbers_of_subclasses_have_the_type_of_their_kind():
    class Choice(enum.IntEnum):
        TWO = 2

    class Metres(float):
        pass

    assert aval_of(Choice.TWO) == aval_of(2) and aval_of(Metres(2)) == aval_of(2.0)
    program = staging.program_of(lambda x: [add_p.bind(x, Choice.TWO), add_p.bind(x, Metres(0.5))], [scalar])
    values = [e.invars[1].val for e in program.eqns]
    assert values == [2, 0.5] and [type(v) for v in values] == [int, float]


def test_one_named_scope_in_two_threads():
    shared = names.named_scope("shared")
    entered_it, second_in, second_out = threading.Event(), threading.Event(), threading.Event()
    seen = {}

    def first():
        with names.named_scope("first"):
            with shared:
                entered_it.set()
                second_in.wait()
            seen["first"] = current.names
        second_out.set()

    def second():
        with names.named_scope("second"):
            entered_it.wait()
            with shared:
                second_in.set()
                second_out.wait()
            seen["second"] = current.names

    threads = [threading.Thread(target=t) for t in (first, second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == {"first": ("first",), "second": ("second",)} and current.names == ()


# ---- signatures


def test_signature_splits_and_merges():
    def f(a, b, *, n=1):
        return a, b, n

    signature = signatures.Signature(f, static_argnames=("b", "n"))
    assert signature.static_argnums == (1,)
    dynamic, named, key = signature.split((1, "two"), {"n": 3})
    assert dynamic == (1,) and named == {}
    assert signature.bound(f, key)(10) == (10, "two", 3) and signature.bound(f, ()) is f
    assert signature.split((5, "two"), {"n": 3})[2] == key
    with pytest.raises(ValueError, match="static argument 1 has type .*not hashable"):
        signature.split((1, []), {})


def test_static_numbers_are_compared_by_type_and_bits():
    same, differ = signatures.Static(1.0), [1, True, np.float32(1), 2.0]
    assert all(signatures.Static(v) != same for v in differ) and signatures.Static(1.0) == same
    assert signatures.Static(0.0) != signatures.Static(-0.0)
    assert signatures.Static(float("nan")) == signatures.Static(float("nan"))


def test_donated_leaves_are_counted_without_static_arguments():
    signature = signatures.Signature(lambda a, b, c, d: None, static_argnums=1, donate_argnums=(0, -1))
    assert signature.donated(([1, 2], "static", 3, {"x": 4}), {}) == (True, True, False, True)
    with pytest.raises(ValueError, match="both static and donated"):
        signatures.Signature(lambda a, b: None, static_argnums=1, donate_argnums=1)
    with pytest.raises(ValueError, match="takes by position is 2"):
        signatures.Signature(lambda a, b: None, static_argnums=2)
    with pytest.raises(ValueError, match="has 'c', which the function does not take"):
        signatures.Signature(lambda a, b: None, static_argnames="c")


def test_make_jaxpr_with_a_static_argument():
    program = staging.make_jaxpr(lambda n, x: [add_p.bind(x, x)] * n, static_argnums=0)(2, one)
    assert len(program.eqns) == 1 and len(program.invars) == 1 and len(program.outvars) == 2


# ---- columns


def test_eight_threads_look_a_rule_up_concurrently(tmp_path, monkeypatch):
    package = tmp_path / "kernel_test_rules"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "slow.py").write_text(
        "import time\n"
        "import kernel_test_shared as shared\n"
        "time.sleep(0.2)\n"
        "shared.column.add(shared.prim, lambda x: x)\n",
        encoding="utf-8",
    )
    shared = types.ModuleType("kernel_test_shared")
    shared.prim = Primitive("toy_slow", "slow")
    shared.column = Column("toy column", "kernel_test_rules", signature="rule(x)")
    monkeypatch.setitem(sys.modules, "kernel_test_shared", shared)
    monkeypatch.syspath_prepend(tmp_path)
    found, start = [], threading.Barrier(8)

    def look():
        start.wait()
        found.append(shared.column.find(shared.prim))

    workers = [threading.Thread(target=look) for _ in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(found) == 8 and None not in found and len(set(map(id, found))) == 1


def test_the_error_of_a_missing_rule_names_its_place_and_signature():
    column = Column("toy column", "kernel_test_absent.rules", signature="rule(x) -> y")
    prim = Primitive("toy_missing", "nowhere")
    with pytest.raises(NotImplementedError, match="toy_missing' has no rule for toy column"):
        column[prim]
    with pytest.raises(NotImplementedError, match=r"column.add\(primitive, rule\)  # rule\(x\) -> y\n.*tests.nowhere"):
        Column("toy column", "tests", signature="rule(x) -> y")[prim]
    column.absent(prim, why="it is a toy")
    with pytest.raises(NotImplementedError, match="it is a toy"):
        column[prim]
    with pytest.raises(NotImplementedError, match="no rule for the types of its results, .*\n.*def_abstract_eval"):
        staging.program_of(lambda x: [Primitive("toy_untyped").bind(x)], [scalar])


# ---- caches


def test_the_cache_of_a_function_is_freed_with_it():
    cache = caches.FunctionCache(size=2)

    def fun(x):
        return x

    table = cache.of(fun)
    assert cache.of(fun) is table and table.get("a") is None
    table.keep("a", 1)
    table.keep("b", 2)
    assert table.get("a") == 1
    table.keep("c", 3)  # "b" is the least recently used
    assert list(table) == ["a", "c"] and table.get("b") is None
    ref = weakref.ref(fun)
    del fun
    gc.collect()
    assert ref() is None and not len(cache._tables)


def test_functions_made_for_a_call_share_the_traces_of_the_user_s():
    traced = []

    def body(x):
        traced.append(x)
        return x

    def loop(role):
        def step(x):
            return add_p.bind(body(x), x)

        step.traces_of = (body, role)
        _, in_tree = pytree.tree_flatten(((one,), {}))
        return staging.trace_function(step, in_tree, (scalar,))[0]

    assert loop("first") is loop("first") and loop("second") is not loop("first")
    assert len(traced) == 2


def test_an_unhashable_function_is_traced_each_time():
    class Fun:
        __hash__ = None

        def __call__(self, x):
            return neg_p.bind(x)

    _, in_tree = pytree.tree_flatten(((one,), {}))
    fun = Fun()
    first, second = (staging.trace_function(fun, in_tree, (scalar,))[0] for _ in range(2))
    assert first is not second and first.out_avals == second.out_avals


def test_tangent_types_have_both_names():
    from bedrax.core import dtypes
    from bedrax.core.avals import ShapedArray

    real, whole = ShapedArray((2,), np.dtype("float32")), ShapedArray((2,), np.dtype("int32"))
    assert real.at_least_vspace() == real.to_tangent_aval() == real
    assert whole.at_least_vspace() == ShapedArray((2,), dtypes.float0)


def test_a_primitive_is_made_by_code_without_a_module():
    space = {"Primitive": Primitive}
    exec("prim = Primitive('toy_of_no_module')", space)
    assert "__name__" not in space and space["prim"].name == "toy_of_no_module"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(space["prim"])


def test_scopes_that_end_in_any_order_do_not_end_open_scopes():
    first, second = names.named_scope("first"), names.named_scope("second")
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert current.names == ("second",)
    second.__exit__()
    assert current.names == ()


def test_an_operation_is_noted_for_the_active_executor_only():
    """A thread may note an operation of an executor after another thread has installed a different one."""

    one, other = (type(name, (executors.Executor,), {"ready": {}})() for name in ("One", "Other"))
    table, run, observer = {}, lambda x: x, lambda *operation: None
    executors.install(one)
    try:
        executors.note_direct(other, table, [float], run)
        assert table == {}
        executors.note_direct(one, table, [float], run)
        assert table == {float: run}
        executors.install(other)
        assert table == {}
        executors.observe(observer)
        executors.note_direct(other, table, [float], run)
        assert table == {}
    finally:
        executors.observe(observer, False)
        executors.install(None)


def test_an_observer_chooses_no_executor(monkeypatch):
    """The executor that evaluated was kept as if the user had chosen it: a backend of a higher rank had no effect."""
    chosen, observer = executors._chosen, lambda *operation: None
    executors.install(None)
    monkeypatch.setattr(executors, "_provided", {})
    first, better = executors.Executor(), executors.Executor()
    first.rank, better.rank = 10**6, 10**6 + 1
    try:
        executors.provide(first)
        assert executors.get() is first
        executors.observe(observer)
        executors.observe(observer, False)
        assert executors.get() is first
        executors.provide(better)
        assert executors.get() is better
    finally:
        executors._provided.clear()
        executors.install(chosen)


def test_a_shape_of_numpy_integers_stays_with_its_type():
    """Equal types are one object: the first one must not decide about the class of the sizes of later ones."""
    odd = avals.interned(ShapedArray((np.int64(7919), np.int32(3)), np.dtype(np.float32)))
    assert [type(n) for n in odd.shape] == [int, int]
    assert [type(n) for n in aval_of(np.ones((7919, 3), np.float32)).shape] == [int, int]


def test_a_keyword_is_not_both_static_and_donated():
    with pytest.raises(ValueError, match=r"\['n'\] are both static and donated"):
        signatures.Signature(lambda a, *, n: None, static_argnames="n", donate_argnames="n")


def test_names_of_static_arguments_may_be_of_a_subclass_of_str():
    f = lambda a, n: (a, n)
    signature = signatures.Signature(f, static_argnames=np.array(["n"]))
    dynamic, named, key = signature.split((1,), {"n": 2})
    assert signature.bound(f, key)(*dynamic, **named) == (1, 2)
    for wrong in (5, ["n", 5]):
        with pytest.raises(TypeError, match="static_argnames must be a string or a sequence of strings, got"):
            signatures.Signature(f, static_argnames=wrong)


def test_a_float64_beyond_float32_becomes_a_constant_without_warning():
    program = staging.make_jaxpr(lambda: np.float64(1e300))()
    assert program.outvars[0].val == np.inf and program.outvars[0].val.dtype == np.float32


def test_structured_elements_are_no_array():
    for x in (np.zeros(3, [("a", "f4")]), np.zeros(3, "V4"), np.zeros((), [("a", "f4")])[()]):
        with pytest.raises(TypeError, match="arrays hold numbers and bools, got"):
            aval_of(x)
    assert aval_of(np.zeros(3, dtypes.float0)).dtype == dtypes.float0
    assert aval_of(np.zeros(3, dtypes.bfloat16)).dtype == dtypes.bfloat16


def test_a_fact_that_is_the_program_itself_makes_no_cycle():
    @facts.cached
    def without_change(program):
        return program

    jaxpr = staging.make_jaxpr(lambda x: x)(one).jaxpr
    assert without_change(jaxpr) is jaxpr and without_change(jaxpr) is jaxpr
    assert facts.fact(jaxpr, "own", lambda: jaxpr) is jaxpr and facts.fact(jaxpr, "own", lambda: None) is jaxpr
    assert jaxpr not in list(jaxpr.cache.values())
