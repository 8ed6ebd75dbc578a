"""Derivatives of operations that hold programs: each derived program is made once."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad, jvp
from bedrax.core.holders import settled
from bedrax.core.tables import programs
from bedrax.core.tracing import Trace, current, entered, set_trace
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.pytree import tree_map

f32 = np.float32
XS = np.linspace(0.1, 0.7, 4, dtype=f32)


def _step(carry, x):
    value, count = carry
    return (lax.mul(lax.add(value, x), value), lax.add(count, np.int32(1))), lax.sin(value)


def _goes_on(state):
    return lax.lt(state[0], np.int32(3))


def _doubled(state):
    return lax.add(state[0], np.int32(1)), lax.mul(state[1], lax.exp(state[1]))


def by_scan(x):
    (value, _), rows = lax.scan(_step, (x, np.int32(0)), XS)
    return lax.add(value, lax.reduce_sum(rows, (0,)))


def by_while(x):
    return lax.while_loop(_goes_on, _doubled, (np.int32(0), x))[1]


def by_cond(x):
    return lax.cond(lax.gt(x, f32(0)), lax.sin, lax.cos, x)


class Noting(Trace):
    """Records the programs of the operations that reach the evaluation."""

    def __init__(self, parent):
        super().__init__(parent)
        self.found = []

    def process(self, prim, args, params):
        if prim in (scan_p, while_p, cond_p):
            self.found += [use.program for use in programs[prim](params)]
        with set_trace(self.parent):
            return self.parent.process(prim, args, params)


def _programs(run):
    with entered(Noting(current.trace)) as trace:
        run()
    return trace.found


def _jvp(f):
    return lambda: jvp(f, (f32(0.3),), (f32(1),))


RUNS = {
    "jvp of scan": _jvp(by_scan),
    "jvp of while": _jvp(by_while),
    "jvp of cond": _jvp(by_cond),
    "jvp of jvp of scan": _jvp(lambda x: jvp(by_scan, (x,), (f32(1),))[1]),
    "grad of scan": lambda: grad(by_scan)(f32(0.3)),
    "grad of cond": lambda: grad(by_cond)(f32(0.3)),
    "grad of jvp of scan": lambda: grad(lambda x: _jvp_at(by_scan, x))(f32(0.3)),
}


def _jvp_at(f, x):
    return jvp(f, (x,), (f32(1),))[1]


@pytest.mark.parametrize("name", RUNS)
def test_programs_are_derived_once(name):
    """Otherwise each call would compile its own program."""
    RUNS[name]()
    first, second = _programs(RUNS[name]), _programs(RUNS[name])
    assert first and len(first) == len(second)
    assert all(a is b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("f", [by_scan, by_while, by_cond])
def test_derivatives_are_those_of_differences(f):
    x, h = 0.3, 1e-3
    found = jvp(f, (f32(x),), (f32(1),))[1]
    np.testing.assert_allclose(found, (f(f32(x + h)) - f(f32(x - h))) / (2 * h), rtol=2e-3)


def test_marks_spread_through_a_carry_until_nothing_changes():
    """Each part of the carry marks the next one: three rounds settle four parts."""

    def rotate(carry, _):
        a, b, c, d = carry
        return (a, a, b, c), None

    found = {}

    class Find(Trace):
        def process(self, prim, args, params):
            found.update(params)
            with set_trace(self.parent):
                return self.parent.process(prim, args, params)

    with entered(Find(current.trace)):
        lax.scan(rotate, tree_map(f32, (1.0, 2.0, 3.0, 4.0)), None, length=2)
    (use,) = programs[scan_p](found)

    def results_of(use, marks):
        place = {v: m for v, m in zip(use.program.invars, marks, strict=True)}
        return [place.get(v, False) for v in use.program.outvars]

    assert settled([use], [True, False, False, False], results_of)[0] == (True,) * 4
    assert settled([use], [False, False, True, False], results_of)[0] == (False, False, True, True)


def test_a_part_of_a_loop_that_no_step_changes_has_a_gradient():
    """The number of steps is not known when the loop is traced."""

    def passed(x):
        step = lambda c: (lax.add(c[0], 1), c[1], lax.add(c[2], c[1]))
        return lax.while_loop(lambda c: lax.lt(c[0], 3), step, (0, x, np.float32(0)))[1]

    assert float(grad(lambda x: lax.mul(passed(x), x))(np.float32(5))) == 10
