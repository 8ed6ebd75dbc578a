"""Tokens, sinks, staging and the platform, beyond the records."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import avals, dead_code
from bedrax.core.staging import make_jaxpr


def test_tokens_are_values_of_a_program():
    jaxpr = make_jaxpr(lambda: lax.after_all(lax.create_token(), lax.create_token()))()
    assert [str(e.primitive) for e in jaxpr.eqns] == ["create_token", "create_token", "after_all"]
    assert jaxpr.out_avals == [avals.abstract_token]


def test_tokens_are_made_eagerly():
    assert avals.aval_of(lax.after_all(lax.create_token())) is avals.abstract_token
    with pytest.raises(TypeError, match="after_all takes tokens, got"):
        lax.after_all(np.float32(1))


def test_a_sink_survives_dead_code_elimination():
    def f(x, sink):
        y = lax.sin(x)
        if sink:
            lax.dce_sink(y)
        return x

    kept = dead_code.dce(make_jaxpr(lambda x: f(x, True))(1.0))
    assert [str(e.primitive) for e in kept.eqns] == ["sin", "dce_sink"]
    assert not dead_code.dce(make_jaxpr(lambda x: f(x, False))(1.0)).eqns


def test_platform_dependent_needs_a_branch():
    with pytest.raises(NotImplementedError, match=r"no branch for platform 'cpu'.*tpu"):
        lax.platform_dependent(np.float32(1), tpu=lax.sin)
    with pytest.raises(ValueError, match="'gpu' is not the name of a platform"):
        lax.platform_dependent(np.float32(1), gpu=lax.sin, default=lax.cos)
    with pytest.raises(ValueError, match="got no function"):
        lax.platform_dependent(np.float32(1))


def test_dtype_of_values_and_types():
    found = [lax.dtype(x) for x in (1.0, int, np.float16, "int8", np.zeros(2, np.uint8), True)]
    assert found == [np.float32, np.int32, np.float16, np.int8, np.uint8, np.bool_]
    for x, message in ((None, "a value or a type is needed"), ([1, 2], "an array or a number is needed")):
        with pytest.raises(TypeError, match=message):
            lax.dtype(x)
