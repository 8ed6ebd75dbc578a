"""Effects that a program defines: in control flow, ordered, and in the condition of a loop."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import effects
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.callbacks import debug_print
from bedrax.xla_backend import effects_barrier


class Foreign(effects.Effect):
    """An effect that is in no set of allowed effects."""


marked_p = Primitive("marked")
marked_p.def_effectful_abstract_eval(lambda x: (x, {Foreign()}))

LOOPS = {
    "cond": lambda x: lax.cond(x > 0, marked_p.bind, lambda x: x, x),
    "scan": lambda x: lax.scan(lambda c, _: (marked_p.bind(c), None), x, None, length=2)[0],
    "while": lambda x: lax.while_loop(lambda c: c < 3, lambda c: marked_p.bind(c) + 1, x),
    "while in its condition": lambda x: lax.while_loop(lambda c: marked_p.bind(c) < 3, lambda c: c + 1, x),
}


@pytest.mark.parametrize("name", LOOPS)
def test_an_effect_that_is_not_allowed_in_control_flow(name):
    with pytest.raises(NotImplementedError, match=f"Effects not supported in `{name.split()[0]}`"):
        make_jaxpr(LOOPS[name])(1)


def test_an_effect_that_cannot_be_lowered():
    assert len(make_jaxpr(marked_p.bind)(1).effects) == 1
    with pytest.raises(ValueError, match="Cannot lower jaxpr with effects"):
        jit(marked_p.bind)(1)


@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["jit", "eagerly"])
def test_ordered_effects_in_the_condition_of_a_loop(wrap, capsys):
    def cond(c):
        debug_print("condition {}", c, ordered=True)
        return c < 2

    def body(c):
        debug_print("body {}", c, ordered=True)
        return c + 1

    assert wrap(lambda x: lax.while_loop(cond, body, x))(np.int32(0)) == 2
    effects_barrier()
    assert capsys.readouterr().out.split("\n")[:-1] == ["condition 0", "body 0", "condition 1", "body 1", "condition 2"]


def test_ordered_effects_in_the_condition_alone_and_with_constants(capsys):
    def f(limit, x):
        def cond(c):
            debug_print("{} {}", c[0], limit, ordered=True)
            return c[0] < limit

        return lax.while_loop(cond, lambda c: (c[0] + 1, c[1] * 2), (x, np.float32(1)))

    count, power = jit(f)(np.int32(3), np.int32(1))
    effects_barrier()
    assert (int(count), float(power)) == (3, 4.0)
    assert capsys.readouterr().out.split("\n")[:-1] == ["1 3", "2 3", "3 3"]
