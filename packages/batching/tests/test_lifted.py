"""Batching of operations that hold programs: each program is batched once."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.core.tables import programs
from bedrax.core.tracing import Trace, current, entered, set_trace

f32 = np.float32
XS = np.linspace(0.1, 0.9, 6, dtype=f32).reshape(3, 2)


class Noting(Trace):
    """Records the programs of the operations that reach the evaluation."""

    def __init__(self, parent):
        super().__init__(parent)
        self.found = []

    def process(self, prim, args, params):
        self.found += [use.program for use in programs[prim](params)]
        with set_trace(self.parent):
            return self.parent.process(prim, args, params)


def _goes_on(state):
    return lax.lt(state[0], np.int32(3))


def _is_small(state):
    return lax.lt(lax.reduce_sum(state[1], (0,)), f32(4))


def _doubled(state):
    return lax.add(state[0], np.int32(1)), lax.add(state[1], state[1])


def _step(carry, x):
    return lax.mul(carry, x), lax.sin(carry)


def by_while(x):
    return lax.while_loop(_goes_on, _doubled, (np.int32(0), x))[1]


def by_while_of_each(x):
    return lax.while_loop(_is_small, _doubled, (np.int32(0), x))[1]


def by_scan(x):
    return lax.scan(_step, x, np.full(4, 0.9, f32))[0]


def by_scan_of_rows(x):
    return lax.scan(_step, f32(2), x)[1]


def by_cond(x):
    return lax.cond(True, lax.sin, lax.cos, x)


CASES = [by_while, by_while_of_each, by_scan, by_scan_of_rows, by_cond, jit(lax.sin)]


@pytest.mark.parametrize("f", CASES)
@pytest.mark.parametrize("axis", [0, 1])
def test_programs_are_derived_once(f, axis):
    mapped = vmap(f, in_axes=axis)
    found = []
    for _ in range(3):
        with entered(Noting(current.trace)) as trace:
            mapped(XS)
        found.append(trace.found)
    assert found[1] and all(a is b for a, b in zip(found[1], found[2], strict=True))


@pytest.mark.parametrize("f", CASES)
@pytest.mark.parametrize("axis", [0, 1])
def test_each_mapped_element_has_the_result_of_a_single_call(f, axis):
    alone = [f(x) for x in np.moveaxis(XS, axis, 0)]
    np.testing.assert_allclose(vmap(f, in_axes=axis)(XS), np.stack(alone), rtol=1e-6)
