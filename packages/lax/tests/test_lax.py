"""Contracts of the vocabulary that hold without an evaluator."""

import subprocess
import sys

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.staging import make_jaxpr


def test_programs_are_made_without_an_executor():
    code = "from bedrax import lax\nfrom bedrax.core.staging import make_jaxpr\nprint(make_jaxpr(lax.sin)(1.0))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"


def test_a_tracer_is_iterated_by_one_operation():
    program = make_jaxpr(list)(np.ones((3, 2), np.float32))
    assert [eqn.primitive.name for eqn in program.eqns] == ["unstack"] and len(program.outvars) == 3


def test_polynomials_refuse():
    x = np.ones(3, np.float32)
    for error, match, args, kwargs in (
        (TypeError, "coefficient is complex, x is float32", (x, [1j]), {}),
        (TypeError, "bool", (np.ones(3, bool), [1, 2]), {}),
        (TypeError, "ranks {1, 2}", (x, [np.ones((2, 3), "f"), 1.0]), {}),
        (TypeError, "incompatible shapes", (x, [np.ones(2, "f"), 1.0]), {}),
        (ValueError, "unroll is not negative, got -1", (x, [1.0]), {"unroll": -1}),
        (TypeError, "iterable", (x, 3), {}),
    ):
        with pytest.raises(error, match=match):
            make_jaxpr(lambda args=args, kwargs=kwargs: lax.polynomial(*args, **kwargs))()


def test_types_of_polynomials():
    for x, coefficients, expected in (
        (np.ones(3, np.float16), [np.float32(1), 2.0], "float16[3]"),
        (np.ones(3, np.int32), [1.5, 2], "int32[3]"),
        (2, [1, 2.0], "int32[]"),
        (2.0, [], "float32[]"),
        (np.ones((3, 1), "f"), [np.ones((1, 2), "f"), 1], "float32[3,2]"),
        (2.0, [np.ones(3, "f")], "float32[3]"),
        (np.complex64(1j), [1.0], "complex64[]"),
    ):
        out = make_jaxpr(lambda x=x, coefficients=coefficients: lax.polynomial(x, coefficients))().out_avals[0]
        assert out.str_short() == expected
    assert make_jaxpr(lambda: lax.polynomial(2, [1, 2.0]))().out_avals[0].weak_type


def test_the_padding_of_windows_is_pairs():
    x = np.ones(3, np.float32)
    for padding in (((1,),), [1], 3, ((1, 1, 1),)):
        with pytest.raises(TypeError, match=r"padding is a name or a pair \(low, high\) per axis, got"):
            make_jaxpr(lambda x, padding=padding: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), padding))(x)
