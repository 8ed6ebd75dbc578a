"""Operations that hold programs, lifted: with toy operations, and values that are computed by hand."""

import numpy as np
import pytest

from bedrax.core import tables
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.facts import cached
from bedrax.core.holders import Body, Reports, held, lift, lifted, reporting, roles, settled, sources
from bedrax.core.ir import Literal, run
from bedrax.core.staging import program_of
from bedrax.core.tables import CARRY, CONSTANT, INDEX, ROW, Use, count
from bedrax.core.tracing import Primitive

add_p = Primitive("toy_sum")
add_p.def_impl(np.add)
add_p.def_abstract_eval(lambda x, y: x)
scalar = ShapedArray((), np.dtype(np.float32))
f32 = np.float32

# consts, carry, rows -> carry, stacked results
loop_p = Primitive("toy_rounds", multiple_results=True)


@loop_p.def_impl
def _loop(*args, body, consts, carry, rounds):
    fixed, state, rows = args[:consts], args[consts : consts + carry], args[consts + carry :]
    stacked = []
    for n in range(rounds):
        out = run(body, *fixed, *state, *(x[n] for x in rows))
        state, ys = out[:carry], out[carry:]
        stacked.append(ys)
    return [*state, *map(np.stack, zip(*stacked, strict=True))]


@tables.programs.rule(loop_p)
def _uses(params):
    body, consts, carry = params["body"], params["consts"], params["carry"]
    ins, outs = tuple(range(len(body.invars))), tuple(range(len(body.outvars)))
    carries = tuple((consts + i, i) for i in range(carry))
    return [Use(body, ins, outs, len(ins) - consts - carry, len(outs) - carry, params["rounds"], carries)]


@tables.with_programs.rule(loop_p)
def _rebuilt(params, bodies, operands, results):
    return {**params, "body": bodies[0], "consts": count(operands, CONSTANT), "carry": count(operands, CARRY)}


# index, operands -> results of one branch
branch_p = Primitive("toy_branch", multiple_results=True)
branch_p.def_impl(lambda index, *args, branches: run(branches[index], *args))
tables.with_programs.add(branch_p, lambda params, branches, operands, results: {"branches": branches})


@tables.programs.rule(branch_p)
def _branch_uses(params):
    return [Use(b, tuple(range(1, 1 + len(b.invars))), tuple(range(len(b.outvars)))) for b in params["branches"]]


def _step(const, a, b, x):
    return [add_p.bind(a, x), add_p.bind(b, const), add_p.bind(a, b)]


BODY = program_of(_step, [scalar] * 4)
LOOP = dict(body=BODY, consts=1, carry=2, rounds=3)
ARGS = (f32(10), f32(1), f32(2), np.array([1, 2, 3], f32))


@cached
def _with_tangents(program, marks, force):
    """Tangents of sums."""
    moved = [a for a, m in zip(program.in_avals, marks, strict=True) if m]

    def flat(*values):
        rest = iter(values[len(marks) :])
        env = {v: (x, next(rest) if m else None) for v, x, m in zip(program.invars, values, marks)}
        read = lambda v: (v.val, None) if type(v) is Literal else env[v]
        for eqn in program.eqns:
            (x, s), (y, t) = map(read, eqn.invars)
            both = add_p.bind(s, t) if s is not None and t is not None else s if t is None else t
            env[eqn.outvars[0]] = add_p.bind(x, y), both
        outs = [read(v) for v in program.outvars]
        outs = [
            (x, f32(0) if t is None and f else t) for (x, t), f in zip(outs, force or [False] * len(outs), strict=True)
        ]
        found.append(tuple([t is not None for _, t in outs]))
        return [*(x for x, _ in outs), *(t for _, t in outs if t is not None)]

    found: list = []
    return program_of(flat, [*program.in_avals, *moved]), found[0]


def test_roles_follow_from_the_declared_programs():
    operands, results = roles(_uses(LOOP), 4)
    assert [w.kind for w in operands] == [CONSTANT, CARRY, CARRY, ROW]
    assert [w.kind for w in results] == [CARRY, CARRY, ROW]
    operands, _ = roles(_branch_uses({"branches": (BODY, BODY)}), 5)
    assert [w.kind for w in operands] == [INDEX] + [CONSTANT] * 4
    assert [w.readers for w in operands] == [()] + [(0, 1)] * 4


@pytest.mark.parametrize(
    "moving, marks, out",
    [
        ({0: 1}, [1, 0, 1, 0], [0, 1, 1]),  # the constant marks the second part of the carry
        ({1: 1}, [0, 1, 0, 0], [1, 0, 1]),
        ({3: np.array([1, 0, 2], f32)}, [0, 1, 0, 1], [1, 0, 1]),
        ({0: 1, 1: -1, 2: 5, 3: np.array([1, 0, 2], f32)}, [1] * 4, [1] * 3),
    ],
)
def test_companions_follow_their_values(moving, marks, out):
    start = [i in moving for i in range(4)]
    tangents = [np.asarray(moving.get(i, np.zeros_like(x)), f32) for i, x in enumerate(ARGS)]
    results, found, moved = lift(loop_p, LOOP, ARGS, start, _with_tangents, tangents)
    assert list(map(bool, out)) == found and [t is not None for t in moved] == found
    for x, y in zip(results, _loop(*ARGS, **LOOP), strict=True):
        np.testing.assert_array_equal(x, y)
    # The loop is linear: its tangents are its values.
    for t, y in zip(moved, _loop(*tangents, **LOOP), strict=True):
        np.testing.assert_array_equal(np.zeros_like(y) if t is None else t, y)
    plan = lifted(_uses(LOOP), tuple(start), _with_tangents, True)
    assert list(plan.marks) == list(map(bool, marks))
    assert plan is lifted(_uses(LOOP), tuple(start), _with_tangents, True)


@pytest.mark.parametrize("index", [0, 1])
def test_branches_agree_in_which_results_have_companions(index):
    same = program_of(lambda a, b: [a, b], [scalar] * 2)
    other = program_of(lambda a, b: [add_p.bind(a, b), f32(7)], [scalar] * 2)
    params, args = {"branches": (same, other)}, (index, f32(1), f32(2))
    results, found, moved = lift(branch_p, params, args, [False, True, False], _with_tangents, [None, f32(5), None])
    assert results == ([1, 2], [3, 7])[index]
    assert found == [True, False] and moved == [5, None]
    results, found, moved = lift(branch_p, params, args, [False, False, True], _with_tangents, [None, None, f32(5)])
    assert found == [True, True] and moved == ([0, 5], [5, 0])[index]


def test_reports_of_rounds_are_joined():
    def largest(program):
        return program_of(lambda *args: [args[1], *run(program, *args)], program.in_avals), True

    maximum_p = Primitive("toy_maximum")
    maximum_p.def_impl(np.maximum)
    maximum_p.def_abstract_eval(lambda x, y: x)
    how = Reports(largest, (scalar,), lambda types: [f32(-9)], lambda a, b: [maximum_p.bind(a[0], b[0])])
    (report,), results = reporting(_uses(LOOP), 4, how).bind(loop_p, LOOP, ARGS, how)
    assert report == 1 + 1 + 2  # the first part of the carry in the last round
    for x, y in zip(results, _loop(*ARGS, **LOOP), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_marked_condition_of_a_loop_marks_the_changed_carries():
    test = program_of(lambda n: [n], [scalar])
    body = program_of(lambda n, kept: [add_p.bind(n, n), kept], [scalar] * 2)
    uses = [Use(test, (0,), (None,)), Use(body, (0, 1), (0, 1), carries=((0, 0), (1, 1)))]
    decided = lambda use, marks: [True] if use.results == (None,) else [False, False]
    assert settled(uses, [False, False], decided)[0] == (True, False)


def test_an_operand_that_a_program_does_not_name_is_taken():
    use = _uses(LOOP)[0]
    body = Body(BODY, sources("operand", use.operands), sources("result", use.results))
    ins, outs = roles([use], 4)
    more = tables.Wire(CONSTANT, ("more", 0), (0,))
    with pytest.raises(KeyError):  # no program determines its type
        held([use], [body], [*ins, more], outs)
    again = held([use], [body], ins, outs)
    assert again.programs == (BODY,)  # unchanged
    assert aval_of(again.bind(loop_p, LOOP, operand=ARGS)["result", 0]) == scalar
