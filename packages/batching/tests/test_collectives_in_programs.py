"""Collectives inside programs without a mapped operand: the named axis is found there, too."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.batching import vmap
from bedrax.core.jitting import jit

X = np.arange(3, dtype=np.float32)
ONE = np.float32(1)


def index():
    return lax.convert_element_type(lax.axis_index("i"), np.float32)


PROGRAMS = {
    "jit": (lambda _: jit(lambda: lax.psum(ONE, "i") + index())(), 3 + X),
    "jit of jit": (lambda _: jit(lambda: jit(index)())(), X),
    "scan": (lambda _: lax.scan(lambda c, _: (c + index(), None), ONE, None, length=2)[0], 1 + 2 * X),
    "scan of a sum": (
        lambda _: lax.scan(lambda c, _: (lax.psum(c, "i"), None), ONE, None, length=2)[0],
        np.full(3, 9.0),
    ),
    "while": (
        lambda _: lax.while_loop(lambda c: lax.psum(c, "i") < 10, lambda c: c + index() + ONE, ONE - ONE),
        2 * (X + 1),
    ),
    "for": (lambda _: lax.fori_loop(0, 3, lambda i, c: c + index(), ONE), 1 + 3 * X),
    "cond": (lambda _: lax.cond(True, lambda: lax.psum(ONE, "i") + index(), lambda: ONE), 3 + X),
    "mapped cond": (lambda x: lax.cond(x > 1, lambda: lax.psum(ONE, "i") + index(), lambda: ONE), [1, 1, 5]),
}


@pytest.mark.parametrize("fun, expected", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_without_mapped_operands(fun, expected):
    np.testing.assert_allclose(vmap(fun, axis_name="i")(X), expected)
    np.testing.assert_allclose(jit(vmap(fun, axis_name="i"))(X), expected)


def test_a_program_that_does_not_name_the_axis_is_not_mapped():
    out = vmap(lambda _: jit(lax.sin)(ONE), axis_name="i", out_axes=None)(X)
    np.testing.assert_allclose(out, np.sin(1), rtol=1e-6)
