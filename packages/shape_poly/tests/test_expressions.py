"""Symbolic dimensions against integers: results agree at every assignment of the variables."""

import operator
import pickle
import threading

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedrax.core import dims
from bedrax.core.dims import InconclusiveDimensionOperation
from bedrax.shape_poly import SymbolicDim, SymbolicScope, is_symbolic_dim, symbolic_shape
from bedrax.shape_poly import bounds as bounds_module
from bedrax.shape_poly.bounds import bounds

SCOPE = SymbolicScope()
NAMES = ("a", "b", "c")
VARIABLES = dict(zip(NAMES, symbolic_shape("a, b, c", scope=SCOPE), strict=True))
ENVS = st.fixed_dictionaries({n: st.integers(1, 12) for n in NAMES})

# A program is a nested tuple, so that it can be run on integers and on dimensions.
LEAVES = st.one_of(st.sampled_from(NAMES), st.integers(-4, 6))
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": dims.max_dim,
    "min": dims.min_dim,
}
PROGRAMS = st.recursive(LEAVES, lambda s: st.tuples(st.sampled_from(list(OPERATORS)), s, s), max_leaves=6)


def run(program, env):
    if isinstance(program, tuple):
        name, x, y = program
        return OPERATORS[name](run(x, env), run(y, env))
    return env[program] if isinstance(program, str) else program


def build(program):
    try:
        return run(program, VARIABLES)
    except ZeroDivisionError:
        hypothesis.assume(False)


def value(program, env):
    try:
        return run(program, env)
    except ZeroDivisionError:
        hypothesis.assume(False)


def at(d, env):
    return d if type(d) is int else d.evaluate(env)


@given(PROGRAMS, ENVS)
def test_arithmetic_agrees_with_integers(program, env):
    d, expected = build(program), value(program, env)
    assert at(d, env) == expected


@given(PROGRAMS, ENVS)
def test_values_are_within_the_bounds_of_expressions(program, env):
    d, expected = build(program), value(program, env)
    low, high = bounds(d)
    assert low <= expected <= high


@given(PROGRAMS, PROGRAMS, ENVS, st.sampled_from([operator.ge, operator.gt, operator.le, operator.lt]))
def test_decided_comparisons_are_right(p, q, env, compare):
    x, y = build(p), build(q)
    expected = compare(value(p, env), value(q, env))
    try:
        found = compare(x, y)
    except InconclusiveDimensionOperation as e:
        assert "is inconclusive" in str(e)
        return
    assert found is expected


@given(PROGRAMS, PROGRAMS, ENVS)
def test_equal_dimensions_are_equal_everywhere(p, q, env):
    x, y = build(p), build(q)
    if x == y:
        assert hash(x) == hash(y)
        assert value(p, env) == value(q, env)
        assert str(x) == str(y)


@given(PROGRAMS)
def test_printed_form_is_read_back(program):
    d = build(program)
    assert symbolic_shape(f"({d},)", scope=SCOPE) == (d,)


@given(PROGRAMS, ENVS)
def test_evaluates_arrays(program, env):
    d = build(program)
    array_env = {k: np.array([v, v + 1], np.int64) for k, v in env.items()}
    try:
        expected = [value(program, {k: v + i for k, v in env.items()}) for i in range(2)]
        with np.errstate(all="raise"):
            found = at(d, array_env)
    except FloatingPointError:
        hypothesis.assume(False)
    np.testing.assert_array_equal(np.broadcast_to(found, (2,)), expected)


def test_evaluation_to_dimensions_substitutes():
    a, b, c = VARIABLES.values()
    d = dims.max_dim(a * b + 1, c) // 2
    assert d.evaluate({"a": b, "b": c, "c": a + 3}) == dims.max_dim(b * c + 1, a + 3) // 2


@pytest.mark.parametrize(
    "text, printed",
    [
        ("1 + 2*b", "2*b + 1"),
        ("floordiv(b, 2)", "floordiv(b, 2)"),
        ("mod(b, 3)", "mod(b, 3)"),
        ("a - b", "- b + a"),
        ("4 - 2*b + a*a + 3*b*a", "3*a*b + a^2 - 2*b + 4"),
        ("b + b - 2*b + 3", "3"),
        ("a - -2", "a + 2"),
        ("-a * -2", "2*a"),
        ("max(a, b)", "max(a, b)"),
        ("max(b, a)", "max(a, b)"),
        ("min(4, a)", "min(a, 4)"),
        ("max(a, 1)", "a"),
        ("floordiv(6*a + 4, 3)", "2*a + 1"),
        ("mod(6*a + 4, 3)", "1"),
        ("floordiv(a*b + a, b + 1)", "a"),
        ("mod(a*b + a, b + 1)", "0"),
        ("floordiv(4*b + 2, 8)", "floordiv(b, 2)"),
        ("a^3", "a^3"),
    ],
)
def test_canonical_form(text, printed):
    (d,) = symbolic_shape(f"({text},)")
    assert str(d) == repr(d) == printed
    assert is_symbolic_dim(d) is (not printed.isdigit())


def test_constant_results_are_integers():
    a, _, _ = VARIABLES.values()
    assert type(a - a) is int and type(a * 0) is int and type(2 * a // a) is int


def test_documented_comparisons():
    a, b = symbolic_shape("a, b")
    assert b >= 1 and b >= 0 and 2 * a + b >= 3 and a + 2 >= 3 and a // 4 >= 0 and a**2 >= 1
    assert b + b == 2 * b and not b + b != 2 * b
    assert (b + 1 == b) is False and (b == 0) is False and (b == 1) is False and (a == b) is False
    assert b in [a, b]
    for question in (lambda: b >= 2, lambda: a >= b, lambda: a - b >= 0, lambda: b >= b % 3):
        with pytest.raises(InconclusiveDimensionOperation):
            question()
    with pytest.raises(
        InconclusiveDimensionOperation, match=r"Symbolic dimension comparison 'a \+ 1' >= 'b' is inconclusive"
    ):
        bool(a + 1 >= b)
    with pytest.raises(
        InconclusiveDimensionOperation, match=r"Dimension polynomial comparison 'a \+ 1' >= 'b' is inconclusive"
    ):
        bool(a + 1 >= b)


def test_relations_of_operations_are_known():
    (b,) = symbolic_shape("b")
    assert b >= b // 2 and b >= (b + 1) // 2 and 2 * (b // 2) <= b and (b + 1) // 2 * 2 >= b
    assert b >= dims.min_dim(b, 4) and dims.max_dim(b, 3) >= b and dims.max_dim(b - 2, 0) <= b
    assert b % 5 <= 4 and b % 5 >= 0


def test_explicit_constraints():
    a, b = symbolic_shape("a, b", constraints=("a >= 16", "b >= 8"))
    assert a + 2 * b >= 32
    a, b = symbolic_shape("a, b", constraints=("a >= b + 8", "b <= 100"))
    assert a - b >= 8 and a > b and b < 101 and a >= 9
    (b,) = symbolic_shape("b", constraints=["b >= mod(b, 3)"])
    assert b >= b % 3
    a, b = symbolic_shape("a, b", constraints=["floordiv(a, b) == 4"])
    assert a // b == 4
    (a, b) = symbolic_shape("a, b", constraints=["4*a == b"])
    assert 8 * a + 1 == 2 * b + 1
    (b,) = symbolic_shape("b", constraints=["mod(b, 2) == 0"])
    assert b % 2 == 0


@given(PROGRAMS, ENVS)
def test_constraints_are_used_soundly(program, env):
    env = {**env, "a": env["a"] + env["b"], "c": min(env["c"], 6)}  # now they hold, since sizes are positive
    scope = SymbolicScope(["a >= b + 1", "c <= 6"])
    variables = dict(zip(NAMES, symbolic_shape("a, b, c", scope=scope), strict=True))
    try:
        d = run(program, variables)
    except ZeroDivisionError:
        hypothesis.assume(False)
    expected = value(program, env)
    low, high = bounds(d)
    assert low <= expected <= high
    assert at(d, env) == expected


@pytest.mark.parametrize(
    "constraint, message",
    [
        ("a > 2", "must contain one of '==' or '>=' or '<='"),
        ("a == 2*a", "Unsatisfiable constraint: a == 2*a"),
        ("0 >= a", "Unsatisfiable constraint: 0 >= a"),
        ("a + b == 3", "Invalid equality constraint: a + b == 3"),
        ("a >= b >= c", "syntax error in symbolic shape"),
    ],
)
def test_bad_constraints(constraint, message):
    with pytest.raises(ValueError) as e:
        SymbolicScope([constraint])
    assert message in str(e.value)


def test_variables_of_different_scopes_are_not_combined():
    (a1,) = symbolic_shape("a")
    (a2,) = symbolic_shape("a", constraints=("a >= 8",))
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes for linear combination"):
        a1 + a2
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes when comparing 'a' >= 'a'"):
        bool(a1 >= a2)
    assert a1 != a2
    (b,) = symbolic_shape("b", scope=a2.scope)
    assert str(a2 + b) == "b + a"
    with pytest.raises(ValueError, match="both a `scope` and `constraints`"):
        symbolic_shape("b", scope=a2.scope, constraints=["b >= 2"])


def test_numbers_of_numpy():
    a, b, _ = VARIABLES.values()
    assert str(np.int32(3) * b) == str(b * np.array(3)) == "3*b"
    assert np.prod((b, 4, a)) == 4 * a * b and np.sum((b, 4, a)) == a + b + 4
    for wrong in (lambda: b + "a", lambda: "a" + b, lambda: b + None):
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
            wrong()
    with pytest.raises(ZeroDivisionError):
        b // 0


def test_a_symbolic_dimension_has_no_number():
    (b,) = symbolic_shape("b")
    for f in (int, float, complex):
        with pytest.raises(
            InconclusiveDimensionOperation, match="Symbolic dimension 'b' used in a context that requires a constant"
        ):
            f(b)
    with pytest.raises(NotImplementedError, match="symbolic dimension 'b' has no value here"):
        b + 0.5
    assert bool(b) and not hasattr(b, "__index__")


def test_unknown_variables_are_named():
    (b,) = symbolic_shape("b")
    with pytest.raises(KeyError, match="Encountered dimension variable 'b' that is not appearing"):
        (b + 1).evaluate({"c": 1})


def test_pickles():
    a, b = pickle.loads(pickle.dumps(symbolic_shape("a + 1, a*b", constraints=("a >= 3",))))
    assert str(a) == "a + 1" and str(b) == "a*b" and a >= 4 and a.scope is b.scope


def test_divides_shapes():
    (b,) = symbolic_shape("b")
    assert dims.divide_shapes((b, 5, 6), (2,)) == 15 * b
    with pytest.raises(InconclusiveDimensionOperation, match="Cannot divide evenly the sizes of shapes"):
        dims.divide_shapes((b, 5, 7), (2,))
    assert isinstance(dims.divide_shapes((b, 4), (2,)), SymbolicDim)


def test_a_thread_reads_no_incomplete_bounds_of_another_thread(monkeypatch):
    answers = []

    def decide(scope):
        a, b = (symbolic_shape(name, scope=scope)[0] for name in "ab")
        return a * b + 3 * a - 2 + (a * b) % 7 >= 1

    for pause in range(40):  # the other thread starts after this number of steps of the search
        scope, steps = SymbolicScope(), 0

        def other(scope=scope):
            try:
                answers.append(decide(scope))
            except InconclusiveDimensionOperation:
                answers.append(None)

        def paused(*args, _lower=bounds_module._lower, pause=pause):
            nonlocal steps
            steps += 1
            if steps == pause + 1 and threading.current_thread() is threading.main_thread():
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
            return _lower(*args)

        with monkeypatch.context() as patched:
            patched.setattr(bounds_module, "_lower", paused)
            assert decide(scope)
    assert len(answers) >= 5
    assert set(answers) == {True}


def test_an_interrupted_search_leaves_nothing_behind(monkeypatch):
    scope = SymbolicScope()
    a, b = (symbolic_shape(name, scope=scope)[0] for name in "ab")
    with monkeypatch.context() as patched:
        patched.setattr(bounds_module, "_interval_lower", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bounds(a * b - 1)
    assert bounds(a * b - 1) == (0, float("inf"))


@given(st.permutations([0, 1, 2, 3]))
def test_bounds_do_not_depend_on_earlier_queries(order):
    def ask(which, scope):
        a, b = (symbolic_shape(name, scope=scope)[0] for name in "ab")
        halves = dims.max_dim(a // 2, b % 3)
        return bounds([halves - a, halves * b - a // 2, dims.min_dim(halves, a) + b, (halves + a) // 2 - b % 3][which])

    scope = SymbolicScope()
    found = {which: ask(which, scope) for which in order}
    assert found == {which: ask(which, SymbolicScope()) for which in order}


@pytest.mark.parametrize(("text", "expected"), [("+ a - b", "- b + a"), ("+a", "a"), ("-a + b", "b - a"), ("é", "é")])
def test_a_leading_sign_and_other_letters(text, expected):
    assert str(symbolic_shape(text)[0]) == expected


def test_a_dimension_has_no_negative_powers():
    with pytest.raises(ValueError, match="no negative powers"):
        symbolic_shape("b")[0] ** -1


def test_a_division_by_zero_in_one_case_of_a_maximum_leaves_bounds_unknown():
    (rest,) = symbolic_shape("mod(a, mod(2*c, max(c, 3)))")
    assert bounds(rest) == (-np.inf, np.inf)
    with pytest.raises(InconclusiveDimensionOperation):
        operator.ge(rest, 1)
