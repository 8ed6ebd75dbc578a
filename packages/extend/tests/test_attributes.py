"""What libraries read of programs and primitives, and the kernel itself has no use for."""

import numpy as np

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive, eval_trace
from bedrax.extend import attributes, jaxprs

attributes.install()


def test_attributes_of_programs_traces_and_primitives():
    x = np.ones(3, np.float32)
    program = make_jaxpr(lambda y: jit(lax.sin)(lax.add(x, y)))(x)
    add, call = program.eqns
    assert program.jaxpr is program and program.literals is program.consts
    np.testing.assert_array_equal(program.literals[0], x)
    assert call.primitive.call_primitive and not add.primitive.call_primitive
    assert not call.primitive.map_primitive and eval_trace.main is eval_trace

    own = jaxprs.CallPrimitive("own_call")
    assert own.call_primitive and not Primitive("plain").call_primitive


def test_recorded_again_equations_keep_their_positions_if_asked():
    program = make_jaxpr(lambda x: lax.sin(lax.cos(x)))(np.float32(1))

    def lines(**options):
        again = make_jaxpr(lambda x: jaxprs.eval_jaxpr(program, program.consts, x, **options))(np.float32(1))
        return [eqn.source_info for eqn in again.eqns]

    assert lines() == lines(propagate_source_info=True) == [eqn.source_info for eqn in program.eqns]
    assert len(set(lines(propagate_source_info=False)) & set(lines())) == 0
    (value,) = jaxprs.eval_jaxpr(program, program.consts, np.float32(0))
    np.testing.assert_allclose(value, np.sin(1), rtol=1e-6)
