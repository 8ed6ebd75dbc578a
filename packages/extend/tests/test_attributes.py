"""Attributes of programs and primitives that libraries read, and the kernel itself does not use."""

import inspect

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import AbstractToken, ShapedArray
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive, eval_trace
from bedrax.extend import api_util, attributes, element_dtypes, jaxprs

attributes.install()


def test_attributes_of_programs_traces_and_primitives():
    x = np.ones(3, np.float32)
    program = make_jaxpr(lambda y: jit(lax.sin)(lax.add(x, y)))(x)
    add, call = program.eqns
    assert program.jaxpr is program and program.literals is program.consts
    np.testing.assert_array_equal(program.literals[0], x)
    assert eval_trace.main is eval_trace
    for eqn in (add, call):  # a caller that reads these attributes takes the parameter `call_jaxpr`
        assert not eqn.primitive.call_primitive and not eqn.primitive.map_primitive

    own = jaxprs.CallPrimitive("own_call")
    assert own.call_primitive and not Primitive("plain").call_primitive


def test_types_of_batches_and_of_tangents():
    array, token = ShapedArray((3, 4), np.dtype(np.float32)), AbstractToken()
    assert jaxprs.mapped_aval(4, 1, array).shape == (3,) and jaxprs.unmapped_aval(5, 1, array).shape == (3, 5, 4)
    assert jaxprs.mapped_aval(4, 0, token) is jaxprs.unmapped_aval(4, 0, token) is token
    with pytest.raises(ValueError, match="4 elements along axis 1, not 5"):
        jaxprs.mapped_aval(5, 1, array)
    tangent = jaxprs.primal_dtype_to_tangent_dtype
    assert tangent(np.float32) == tangent("float32") == tangent(np.dtype("float32")) == np.float32
    assert tangent(np.int32) == tangent("bool") == dtypes.float0
    own = element_dtypes.primal_tangent_dtype(np.int8, np.float32)
    assert tangent(own) == np.float32


def test_eval_jaxpr_keeps_source_info_unless_told_otherwise():
    program = make_jaxpr(lambda x: lax.sin(lax.cos(x)))(np.float32(1))

    def lines(**options):
        again = make_jaxpr(lambda x: jaxprs.eval_jaxpr(program, program.consts, x, **options))(np.float32(1))
        return [eqn.source_info for eqn in again.eqns]

    assert lines() == lines(propagate_source_info=True) == [eqn.source_info for eqn in program.eqns]
    assert len(set(lines(propagate_source_info=False)) & set(lines())) == 0
    (value,) = jaxprs.eval_jaxpr(program, program.consts, np.float32(0))
    np.testing.assert_allclose(value, np.sin(1), rtol=1e-6)


def test_names_for_messages():
    def loss(weights, n=1, *rest, c=2):
        pass

    given = ({"a": 1, "b": (2, 3)}, 3, 4), {"c": [1]}
    leaves = ("weights['a']", "weights['b'][0]", "weights['b'][1]", "n", "rest[0]", "c[0]")
    info = api_util.debug_info("mine", loss, *given, result_paths_thunk=lambda: ("result",))
    assert (info.traced_for, info.arg_names, info.result_paths) == ("mine", leaves, ("result",))
    assert "loss at " in info.func_src_info and "test_attributes.py" in info.func_src_info and "loss" in info.func_name
    names = lambda **options: api_util.debug_info("mine", loss, *given, **options).arg_names
    assert names(static_argnums=(1,)) == names(static_argnames=("n",)) == (*leaves[:3], *leaves[4:])
    assert names(static_argnums=(0, -1), static_argnames=("c",)) == ("n",)
    signature = inspect.signature(lambda x, n, k, c: None)
    assert names(signature=signature)[0] == "x['a']"
    assert api_util.debug_info("mine", loss, (), {}, sourceinfo="here").func_src_info == "here"
    assert api_util.debug_info("mine", max, (1, 2), {}).arg_names == ("args[0]", "args[1]")
