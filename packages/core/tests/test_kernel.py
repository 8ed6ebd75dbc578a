"""The kernel with three toy primitives: `add` and `neg` compute, `apply` holds a program. No layer above is needed."""

import gc
import threading
import weakref

import numpy as np
import pytest

from bedrax.core import config, facts, staging, tracing
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.errors import JaxprTypeError, LeakedTracerError
from bedrax.core.ir import Eqn, Jaxpr, Var, eval_jaxpr
from bedrax.core.jitting import holds_program
from bedrax.core.tracing import Primitive, Trace, Tracer, current, entered

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
        self.trace, self.value = trace, value

    aval = property(lambda self: aval_of(self.value))


class CountTrace(Trace):
    """Counts the operations on its tracers."""

    __slots__ = ("count",)

    def __init__(self, parent):
        super().__init__(parent)
        self.count = 0

    def process(self, prim, args, params):
        mine = [type(x) is Counted and x.trace is self for x in args]
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
        assert add_p.bind(one, one) == 2  # not its business
    assert current.trace is tracing.eval_trace and not trace.alive
    assert trace.count == 2 and out.value == -2


def test_entered_ends_when_an_error_leaves():
    trace = CountTrace(current.trace)
    with pytest.raises(ZeroDivisionError), entered(trace):
        1 / 0
    assert current.trace is tracing.eval_trace and not trace.alive


@pytest.fixture
def dispatcher(monkeypatch):
    """What a backend that dispatches calls outside Python is told."""
    state = [None]

    def swap(new):
        old, state[0] = state[0], new
        return old

    monkeypatch.setattr(tracing, "must_see_calls", swap)
    return state


def test_a_trace_that_records_tells_the_dispatcher(dispatcher):
    seen = []

    def fun(x):
        seen.append(dispatcher[0])
        return _double(x)

    staging.program_of(fun, [scalar])
    staging.eval_shape(lambda x: fun(x)[0], one)
    assert seen == [True, True] and dispatcher == [None]


def test_a_trace_that_follows_its_own_values_only_leaves_the_dispatcher_alone(dispatcher):
    class Follows(CountTrace):
        sees_constants = False

    with entered(Follows(current.trace)):
        assert dispatcher == [None]
    with entered(CountTrace(current.trace)):
        assert dispatcher == [True]
    assert dispatcher == [None]


def test_a_leak_is_named_where_it_is_asked_for():
    kept = []

    def leaks(x):
        kept.append(x)
        return _double(x)

    staging.program_of(leaks, [scalar])
    with config.check_tracer_leaks(True):
        staging.program_of(_double, [scalar])
        with pytest.raises(LeakedTracerError, match=r"Leaked trace StagingTrace(.|\n)*held by a list"):
            staging.program_of(leaks, [scalar])
        with pytest.raises(LeakedTracerError, match="Leaked trace ShapeTrace"):
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


def test_what_a_function_returns_besides_values_comes_out():
    program, aux = staging.trace_to_jaxpr(lambda x: (_double(x), {"anything": 7}), [scalar])
    assert aux == {"anything": 7}
    assert [e.primitive for e in program.eqns] == [add_p]
    assert eval_jaxpr(program, program.consts, one) == [2]


def test_types_only_records_types_and_nothing_else():
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


def test_threads_do_not_see_each_others_traces():
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


def test_what_is_derived_from_a_program_is_checked_where_it_is_asked_for():
    derive = facts.cached(lambda program, n: (n, [_ill_typed()]))
    program = staging.program_of(_double, [scalar])
    derive(program, 1)
    with config.enable_checks(True), pytest.raises(JaxprTypeError, match="declares results of types f32"):
        derive(program, 2)


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
