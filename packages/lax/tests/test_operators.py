"""Operators and promotion, as the programs that they become."""

import operator

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.staging import make_jaxpr
from bedrax.lax.promotion import promote, promote_pair

X = np.ones((2, 3), np.float32)
I = np.ones((2, 3), np.int32)


def bound(fun, *args):
    """The primitives that a function binds, and the types of its results."""
    program = make_jaxpr(fun)(*args)
    return [str(e.primitive) for e in program.eqns], [a.str_short() for a in program.out_avals]


@pytest.mark.parametrize(
    ("op", "x", "y", "primitives", "result"),
    [
        (operator.add, X, X, ["add"], "float32[2,3]"),
        (operator.sub, X, 1, ["sub"], "float32[2,3]"),
        (operator.mul, X, 2.5, ["mul"], "float32[2,3]"),
        (operator.truediv, X, X, ["div"], "float32[2,3]"),
        (operator.add, X, I, ["convert_element_type", "add"], "float32[2,3]"),
        (operator.truediv, I, I, ["convert_element_type", "convert_element_type", "div"], "float32[2,3]"),
        (operator.and_, I, I, ["and"], "int32[2,3]"),
        (operator.lt, X, I, ["convert_element_type", "lt"], "bool[2,3]"),
        (operator.eq, X, X, ["eq"], "bool[2,3]"),
        (operator.pow, X, 2, ["integer_pow"], "float32[2,3]"),
        (operator.lshift, I, 1, ["shift_left"], "int32[2,3]"),
    ],
)
def test_binary_operators(op, x, y, primitives, result):
    y_traced = isinstance(y, np.ndarray)
    found = bound(op, x, y) if y_traced else bound(lambda x: op(x, y), x)
    assert found == (primitives, [result])


@pytest.mark.parametrize(("op", "primitive"), [(operator.neg, "neg"), (abs, "abs"), (operator.invert, "not")])
def test_unary_operators(op, primitive):
    assert bound(op, I) == ([primitive], ["int32[2,3]"])


@pytest.mark.parametrize(
    ("x", "y", "result"),
    [
        ("int8", "float16", "float16"),
        ("int32", "uint8", "int32"),
        ("int32", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "float32"),
        ("float32", "complex64", "complex64"),
        ("bool", "int8", "int8"),
        ("uint32", "int32", "int32"),
        ("bool", "bool", "bool"),
    ],
)
def test_promotion_table(x, y, result):
    def f(a, b):
        p, q = promote_pair("f", a, b)
        assert p.dtype == q.dtype
        return p

    a, b = np.zeros(2, x), np.zeros(2, y)
    for pair in ((a, b), (b, a)):
        assert make_jaxpr(f)(*pair).out_avals[0].dtype == result


def test_weak_operands_do_not_decide():
    (out,) = make_jaxpr(lambda x, s: x * s)(np.ones(2, np.float16), 2.5).out_avals
    assert out.dtype == np.float16 and not out.weak_type
    (out,) = make_jaxpr(lambda x, s: x * s)(np.ones(2, np.int32), 2.5).out_avals
    assert out.dtype == np.float32 and out.weak_type


def test_python_scalars_become_constants():
    program = make_jaxpr(lambda x: x * 2 + 1.5)(X)
    assert [e.primitive.name for e in program.eqns] == ["mul", "add"]
    assert program.out_avals[0].dtype == np.float32 and not program.out_avals[0].weak_type


def test_shapes_are_promoted():
    def f(x, y):
        x, y = promote_pair("f", x, y)
        assert x.shape == y.shape == (2, 3)
        return x, y

    make_jaxpr(f)(np.ones((2, 1), np.int8), np.ones(3, np.float16))


def test_promotion_to_floats_converts_integers():
    def f(x, y):
        return promote("f", (x, y), True)

    assert [a.dtype for a in make_jaxpr(f)(np.int32(1), np.ones(2, np.int32)).out_avals] == [np.float32] * 2


def test_errors_name_the_operand_that_is_no_array():
    with pytest.raises(TypeError, match="at position 1, got <class 'str'>"):
        make_jaxpr(lambda x: promote_pair("f", x, "a"))(np.ones(2))
    with pytest.raises(TypeError, match="one dtype, got float32, int32"):
        make_jaxpr(lambda: lax.add(X, I))()
