"""Specifications, solving for variables, and dimensions as operands of programs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedrax import lax
from bedrax.core import dims, staging
from bedrax.core.avals import ShapedArray, ShapeDtypeStruct
from bedrax.shape_poly import (
    constraints_of,
    solve_dims,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
    symbolic_shapes,
)


@pytest.mark.parametrize(
    "spec, like, shape",
    [
        ("a, _, ...", (1, 2, 3, 4), "(a, 2, 3, 4)"),
        ("(b, ...)", (5,), "(b,)"),
        (None, (1, 2), "(1, 2)"),
        ("...", (), "()"),
        ("(b,)", (None,), "(b,)"),
        ("b, 28", (None, None), "(b, 28)"),
        ("(2*h + 1, max(h, 3))", None, "(2*h + 1, max(h, 3))"),
        ("", None, "()"),
    ],
)
def test_specifications(spec, like, shape):
    assert str(symbolic_shape(spec, like=like)) == shape


@pytest.mark.parametrize(
    "spec, like, message",
    [
        ("a, _", None, "in dimension 1: spec contains ... but no 'like' shape was given"),
        ("a, ...", (1, None), "unexpected placeholder for unknown dimension; like="),
        ("a, ...", (1, None), "Name the dimension in the specification, as in '(_, d1)'"),
        ("a, 3", (1, 2), "in dimension 1: different size 3 for known dimension"),
        ("a, b", (1,), "it has 2 dimensions, the shape it is for has 1"),
        ("a, _", (1,), "the shape it is for has 1 dimensions"),
        ("a.b", None, "in dimension 0: unexpected '.'"),
        ("a, 1.5", None, "in dimension 1: expecting integer, found 1.5"),
        ("(a", None, "expected ')', found 'the end'"),
        ("a,,b", None, "in dimension 1: expected a variable"),
        ("..., a", (1, 2), "unexpected ','"),
        ("foo(a)", None, "unexpected '('"),
    ],
)
def test_bad_specifications(spec, like, message):
    with pytest.raises(ValueError) as e:
        symbolic_shape(spec, like=like)
    assert message in str(e.value) and repr(spec) in str(e.value)


def test_args_specs():
    args = (np.ones((2, 3), np.float32), {"x": np.ones(4, np.int32)})
    x, d = symbolic_args_specs(args, ("a, _", {"x": "2*a"}))
    a = x.shape[0]
    assert x == ShapeDtypeStruct((a, 3), np.float32) and d == {"x": ShapeDtypeStruct((2 * a,), np.int32)}
    x, d = symbolic_args_specs(args, "a, ...")
    assert str(x.shape) == "(a, 3)" and str(d["x"].shape) == "(a,)" and d["x"].shape[0] == x.shape[0]
    x, d = symbolic_args_specs(args, ("a, _", None))
    assert d["x"].shape == (4,)
    with pytest.raises(ValueError, match="pytree structure error"):
        symbolic_args_specs(args, ("a, _",))


def solve(specs, shapes, constraints=()):
    symbolic = symbolic_shapes([[None] * len(s) for s in shapes], specs, constraints)
    return solve_dims(symbolic, lambda i, k: shapes[i][k])


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_solves(a, b, c):
    env = {"a": a, "b": b, "c": c}
    for specs in (
        ["a, 2*b + 1", "c"],
        ["a + b, b", "3*c + a"],
        ["a*b, b", "a*c"],
        ["a*a*b, a, a - c"],
        ["a + b, a - b, c"],
        ["a + b + c, a + 2*b, b + c"],
        ["floordiv(a, b), a, b, mod(c, a), max(c, a), c"],
    ):
        found = symbolic_shapes([[None] * (s.count(",") + 1 - 1 * s.count("(")) for s in specs], specs)
        shapes = [[d.evaluate(env) for d in shape] for shape in found]
        assert solve_dims(found, lambda i, k, shapes=shapes: shapes[i][k]) == env


@pytest.mark.parametrize(
    "specs, shapes, message",
    [
        (["b"], [(0,)], "Dimension variable b must have integer value >= 1. Found value 0 when solving b == 0"),
        (["b"], [(0,)], "Expected value >= 1 for dimension variable 'b'"),
        (["b, b"], [(4, 5)], "dimension variable 'b' corresponding to multiple values {4, 5}"),
        (
            ["b, b"],
            [(4, 5)],
            "Found inconsistency between dimension size args[0].shape[1] (= 5) and the specification 'b' (= 4)",
        ),
        (["2*b"], [(5,)], "Division had remainder 1 when computing the value of 'b'"),
        (["a*a"], [(4,)], "Cannot solve for values of dimension variables {'a'}"),
        (["a + b"], [(4,)], "Cannot solve for values of dimension variables {'a', 'b'}"),
        (["a*a, a"], [(4, 3)], "and the specification 'a^2' (= 9)"),
        (["a, 5"], [(4, 3)], "Expected the constant 5 for dimension args[0].shape[1], found 3"),
    ],
)
def test_unsolvable(specs, shapes, message):
    with pytest.raises(ValueError) as e:
        solve(specs, shapes)
    assert message in str(e.value)


def test_constraints_are_checked():
    constraints = ("a >= 4", "mod(a, 2) == 0")
    assert solve(["a"], [(6,)], constraints) == {"a": 6}
    with pytest.raises(
        ValueError,
        match=r"symbolic shape constraint a >= 4. Expected 'a - 4' to be greater or equal to 0, but found -1",
    ):
        solve(["a"], [(3,)], constraints)
    with pytest.raises(
        ValueError, match=r"constraint mod\(a, 2\) == 0. Expected 'mod\(a, 2\)' to be equal to 0, but found 1"
    ):
        solve(["a"], [(5,)], constraints)
    (shape,) = symbolic_shapes([(None,)], ["a"], constraints)
    assert constraints_of([ShapedArray(shape, np.float32)]) == constraints


def test_unknown_sizes_are_asserted():
    class Size:  # an opaque number with arithmetic
        def __init__(self, text):
            self.text = text

        def __floordiv__(self, n):
            return Size(f"({self.text} // {n})")

        def __mul__(self, n):
            return Size(f"({self.text} * {n})")

        def __mod__(self, n):
            return Size(f"({self.text} % {n})")

    asserted = []

    def assertion(relation, x, y, message, values):
        assert all(f"{{{i}}}" in message for i in range(1)) and "{{" not in message
        message.format(*(getattr(v, "text", v) for v in values))
        asserted.append((getattr(x, "text", x), relation, getattr(y, "text", y)))

    shapes = symbolic_shapes([(None, None)], ["2*b, b"])
    env = solve_dims(shapes, lambda i, k: Size("xy"[k]), assertion=assertion)
    assert env["b"].text == "(x // 2)"
    assert ("(x % 2)", "==", 0) in asserted and ("(x // 2)", ">=", 1) in asserted
    assert ("y", "==", "(x // 2)") in asserted


def test_dimensions_are_operands_of_programs():
    (b,) = symbolic_shape("b")

    def program(x):
        n = x.shape[0]
        return (
            x + n,
            5.0 + n,
            n - np.arange(5, dtype=np.int32),
            n / 2,
            lax.sin(lax.convert_element_type(n, np.float32)),
        )

    made, outs = staging.make_jaxpr(program), None
    jaxpr = made(ShapeDtypeStruct((b,), np.float32))
    outs = [v.aval for v in jaxpr.jaxpr.outvars] if hasattr(jaxpr, "jaxpr") else [v.aval for v in jaxpr.outvars]
    assert [str(a.shape) for a in outs] == ["(b,)", "()", "(5,)", "()", "()"]
    assert [a.dtype.kind for a in outs] == ["f", "f", "i", "f", "f"]
    assert "dim_as_value[dim=b" in str(jaxpr)
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type"):
        made2 = staging.make_jaxpr(lambda x: lax.reshape(x, (x.shape[0] * np.array([4]),)))
        made2(ShapeDtypeStruct((b, 4), np.float32))


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("b // 2", 5),
        ("b % 3", 2),
        ("(b + 1) * 2", 24),
        ("((b + 1) * 2)", 24),
        ("2 * (b - c) // 3", 4),
        ("(b)", 11),
        ("b * (c + 1) ^ 2", 275),
        ("-(b + c)", -15),
        ("(b + c) // 2 * 3", 21),
        ("b // -2", -6),
    ],
)
def test_division_and_parentheses_in_specifications(spec, value):
    (d,) = symbolic_shape(spec)
    assert d.evaluate({"b": 11, "c": 4}) == value
    (again,) = symbolic_shape(str(d), scope=d.scope)
    assert again == d


@pytest.mark.parametrize("spec", ["(b", "b)", "(b + 1))", "b //", "b % % 2", "()b", "b (c)"])
def test_wrong_parentheses(spec):
    with pytest.raises(ValueError, match="syntax error"):
        symbolic_shape(spec)


def test_multiples_are_divided():
    """The constraint ``mod(b, 8) == 0`` makes multiples of b divisible, and b at least 8."""
    b, c = symbolic_shape("b, c", constraints=("mod(b, 8) == 0",))
    assert b % 8 == 0 and b % 4 == 0 and (b * c) % 8 == 0 and (3 * b + 8) % 8 == 0
    assert (b // 8) * 8 == b and (b * c) // 8 * 8 == b * c and (b * c) // 4 == 2 * c * (b // 8)
    assert b >= 8 and (b // 8) >= 1
    assert ((b * c) // 8).evaluate({"b": 24, "c": 5}) == 15
    with pytest.raises(dims.InconclusiveDimensionOperation):
        assert b >= 9
    assert dims.divide_shapes((b, c), (8,)).evaluate({"b": 16, "c": 3}) == 6


def test_bounds_of_quotients_bound_the_dividends():
    b, c = symbolic_shape("b, c", constraints=("floordiv(b, 8) >= 1", "floordiv(c, 4) <= 2"))
    assert b >= 8 and c <= 11
    with pytest.raises(dims.InconclusiveDimensionOperation):
        assert b >= 9
    with pytest.raises(dims.InconclusiveDimensionOperation):
        assert c <= 10


def test_quotients_by_dimensions():
    (b,) = symbolic_shape("b")
    assert (2 * b - 1) // b == 1 and (2 * b - 1) % b == b - 1 and (3 * b) // b == 3


def test_bounds_of_dimensions():
    a, b = symbolic_shape("a, b")
    (c,) = symbolic_shape("c", constraints=("c >= 4", "c <= 10"))
    inf = float("inf")
    for dimension, expected in (
        (a, (1, inf)),
        (a + 3, (4, inf)),
        (c, (4, 10)),
        (2 * c - 1, (7, 19)),
        (-a, (-inf, -1)),
        (a - b, (-inf, inf)),
        (a // 2, (0, inf)),
        (a % 3, (0, 2)),
        (c // 3, (1, 3)),
        (c * c, (16, 100)),
        (7, (7, 7)),
        (np.int32(7), (7, 7)),
        (a - a, (0, 0)),
        (symbolic_shape("max(a, 3)")[0], (3, inf)),
    ):
        assert symbolic_dim_bounds(dimension) == expected, dimension
    for wrong in (1.5, "a", None):
        with pytest.raises(TypeError, match="integer"):
            symbolic_dim_bounds(wrong)


@given(st.integers(1, 30), st.integers(1, 30))
def test_values_lie_within_the_bounds(x, y):
    a, b = symbolic_shape("a, b", constraints=("a <= 30", "b <= 30"))
    for dimension, value in ((a * b - 2 * b, x * y - 2 * y), (a // 3 + b % 4, x // 3 + y % 4), (5 - a * a, 5 - x * x)):
        low, high = symbolic_dim_bounds(dimension)
        assert low <= value <= high
