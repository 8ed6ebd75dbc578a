"""Dead code of programs, removed by the functions of `partial_eval`."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.avals import aval_of
from bedrax.core.ir import eval_jaxpr
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.extend import partial_eval
from bedrax.state import new_ref


def test_dead_code_of_programs_and_their_constants():
    a, b = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    program = make_jaxpr(lambda x, y: (lax.mul(x, a), lax.mul(y, b)))(a, b)
    smaller, constants, used = partial_eval.dce_jaxpr_consts(program, [True, False])
    assert constants == [True, False] and used == [True, False] and len(smaller.eqns) == 1
    (eqn,) = make_jaxpr(jit(lambda x, y: (lax.neg(x), lax.neg(y))))(1.0, 2.0).eqns
    needed, rest = partial_eval.dce_jaxpr_call_rule([True, False], eqn)
    assert needed == [True, False] and len(rest.outvars) == 1


def test_removal_of_dead_code_keeps_the_constants_of_a_program():
    """The constants that were returned with the program fit the smaller program, too."""
    a, b = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    types = [aval_of(a), aval_of(b)]
    program, _, consts = partial_eval.trace_to_jaxpr_dynamic(
        lambda x, y: (lax.mul(x, a), lax.neg(lax.mul(b, b))), types
    )
    smaller, used = partial_eval.dce_jaxpr(program, [False, True])
    assert used == [False, False]
    (out,) = eval_jaxpr(smaller, consts)
    np.testing.assert_array_equal(out, -b * b)
    assert partial_eval.dce_jaxpr(program, True)[1] == [True, False]
    # The constants and the arguments are one sequence of values.
    for count in range(5):
        values = [*consts, 2 * a, b]
        np.testing.assert_array_equal(eval_jaxpr(program, values[:count], *values[count:])[0], 2 * a * a)
    for wrong in ([], [*consts, a], [*consts, a, b, b]):
        with pytest.raises(TypeError, match="2 constants and 2 arguments"):
            eval_jaxpr(program, [], *wrong)


@pytest.mark.parametrize("read_after", [True, [False, True, True], [True, False, True], False])
def test_writes_to_a_reference_that_is_never_read_are_dead_code(read_after):
    def fun(first, second, x):
        first[...] = x
        second[...] = x * 2
        return x + 1, second[...] + 1

    refs = [new_ref(jnp.zeros(3)) for _ in range(2)]
    program = make_jaxpr(fun)(*refs, jnp.ones(3))
    for used in ([True, True], [True, False]):
        smaller, needed = partial_eval.dce_jaxpr(program, used, False, read_after)
        each = [read_after] * 3 if isinstance(read_after, bool) else read_after
        assert needed == [each[0], each[1] or used[1], True]
        kept = [eqn.invars[0] for eqn in smaller.eqns if any(e.writes for e in eqn.effects)]
        assert len(kept) == sum(needed[:2])
        assert len(smaller.outvars) == sum(used)
