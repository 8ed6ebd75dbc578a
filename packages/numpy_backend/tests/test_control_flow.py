"""Loops and branches as users call them, and their errors for functions that do not fit."""

import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.avals import aval_of
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr

f32 = np.float32
X = np.arange(3, dtype=f32)


def keep(c, x):
    return lax.add(c, x), c


# ---- scan


@pytest.mark.parametrize("unroll", [1, 2, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_loop(reverse, unroll):
    carry, ys, expected = f32(1), [], f32(1)
    for x in X[::-1] if reverse else X:
        ys.append(expected)
        expected = expected + x
    out, stacked = lax.scan(keep, carry, X, reverse=reverse, unroll=unroll)
    assert float(out) == expected
    np.testing.assert_allclose(np.asarray(stacked), ys[::-1] if reverse else ys)


def test_scan_of_nothing_and_of_a_length():
    carry, ys = lax.scan(keep, f32(2), X[:0])
    assert float(carry) == 2 and ys.shape == (0,)
    carry, ys = lax.scan(lambda c, _: (lax.mul(c, 2.0), None), f32(1), length=5)
    assert float(carry) == 32 and ys is None
    carry, ys = lax.scan(lambda c, x: ({"n": c["n"]}, (x["a"], c["n"])), {"n": 1}, {"a": X})
    assert [y.shape for y in ys] == [(3,), (3,)]


@pytest.mark.parametrize(
    "loop",
    [
        lambda body, init: lax.scan(lambda c, _: (body(c), None), init, None, length=3)[0],
        lambda body, init: lax.fori_loop(0, 3, lambda _, c: body(c), init),
        lambda body, init: lax.while_loop(lambda c: lax.lt(c[0], np.float32(4)), body, init),
    ],
    ids=["scan", "fori_loop", "while_loop"],
)
@pytest.mark.parametrize("to_array", [float, lax.asarray, np.float32])
def test_the_body_is_traced_once_if_the_carry_becomes_strongly_typed(loop, to_array):
    """An effect of Python in the body, such as a draw from a generator of keys, would occur twice."""
    traced = []

    def body(carry):
        traced.append(carry)
        a, b = carry
        return a + np.float32(1), b + a  # `b` becomes strongly typed because of `a`

    out = loop(body, (to_array(1.0), to_array(2.0)))
    assert [float(x) for x in out] == [4, 8] and not any(x.weak_type for x in out)
    assert len(traced) == 1


def test_weak_types_of_the_carry_settle():
    carry, _ = lax.scan(lambda c, x: (lax.add(c, x), None), 0.0, X)  # a Python number and a float32
    assert carry.dtype == f32 and float(carry) == 3
    assert lax.while_loop(lambda c: lax.lt(c, X[2]), lambda c: lax.add(c, X[1]), 0.0).dtype == f32


@pytest.mark.parametrize(
    "run, error, text",
    [
        (lambda: lax.scan(lambda c, x: c, 0.0, X), TypeError, "f returns a pair"),
        (lambda: lax.scan(3, 0.0, X), TypeError, "f is a function"),
        (lambda: lax.scan(keep, 0.0, (X, X[:2])), ValueError, "leading axes have lengths 3, 2; they must be equal"),
        (lambda: lax.scan(keep, 0.0, X, length=4), ValueError, "but the leading axes have lengths"),
        (lambda: lax.scan(keep, 0.0), ValueError, "the number of steps is unknown"),
        (lambda: lax.scan(keep, 0.0, {"a": 3.0}), ValueError, "has no leading axis to scan over, it is"),
        (
            lambda: lax.scan(keep, 0.0, X, unroll=-1),
            ValueError,
            "unroll is the number of steps that are taken at a time",
        ),
        (lambda: lax.scan(keep, 0.0, X, unroll=2.5), TypeError, "unroll is a bool or an int, got 2.5"),
        (lambda: lax.fori_loop(0, 2.5, keep, 0.0), TypeError, "lower and upper have one dtype"),
        (lambda: lax.associative_scan(lax.add, X, axis=3), ValueError, "axis=3 names position 3"),
        (
            lambda: lax.scan(lambda state, x: ((state, state), x), 0.0, X),
            TypeError,
            "scan: the body returns a carry of another structure than it gets:\n"
            "  * the input carry state is a leaf, but the carry output is a tuple of 2 children\n<lambda> at ",
        ),
        (
            lambda: lax.scan(lambda c, x: ({"a": c["a"], "b": X}, x), {"a": 1.0, "b": 2.0}, X),
            TypeError,
            "scan: the body returns a carry of other types than it gets:\n"
            "  * component c['b']: got float32[], returned float32[3]: the shapes do not match\nConvert what <lambda> at ",
        ),
        (
            lambda: lax.while_loop(lambda c: 1, lambda c: c, 0),
            TypeError,
            "cond_fun returns one boolean scalar, got int32[]; write a comparison",
        ),
        (
            lambda: lax.while_loop(lambda c: (True,), lambda c: c, 0),
            TypeError,
            "cond_fun returns one boolean scalar, got the structure PyTreeDef",
        ),
        (
            lambda: lax.while_loop(lambda v: True, lambda v: np.int16(1), np.int32(0)),
            TypeError,
            "while_loop: the body returns a carry of other types than it gets:\n"
            "  * v: got int32[], returned int16[]: the dtypes do not match",
        ),
        (
            lambda: lax.fori_loop(0, np.ones(2, np.int32), lambda i, c: c, 0),
            TypeError,
            "lower and upper are real scalars, got ~int32",
        ),
        (
            lambda: lax.fori_loop(np.int32(0), np.int16(3), lambda i, c: c, 0),
            TypeError,
            "lower and upper have one dtype, got int",
        ),
        (
            lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), 0),
            TypeError,
            "fori_loop: the body returns a carry of another structure than it gets:\n"
            "  * the input carry c is a leaf, but the carry output is a tuple of 2 children\n<lambda> at ",
        ),
        (
            lambda: lax.cond(True, lambda: 1, lambda: 2.0),
            TypeError,
            "cond: the branches return results of different types:\n  * the result of true_fun has type int32[], that of"
            " false_fun float32[]: the dtypes do not match,\n  where true_fun is <lambda> at ",
        ),
        (
            lambda: lax.cond(True, lambda: {"a": 1, "b": 2}, lambda: {"a": 1, "c": 2}),
            TypeError,
            "cond: the branches return results of different structures:\n  * the output of true_fun is a dict"
            " with keys ['a', 'b'], but the output of false_fun is a dict with keys ['a', 'c'],\n  where true_fun is ",
        ),
        (
            lambda: lax.switch(0, [lambda: (1, X), lambda: (1, X[:2])]),
            TypeError,
            "switch: the branches return results of different types:\n  * the result[1] of branch 0 has type float32[3],"
            " that of branch 1 float32[2]: the shapes do not match",
        ),
        (lambda: lax.cond(X, lambda: 1, lambda: 2), TypeError, "Pred must be a scalar, got "),
        (lambda: lax.cond("a", lambda: 1, lambda: 2), TypeError, "Pred must be a scalar, got"),
        (lambda: lax.cond(True, 1, 2), TypeError, "true_fun and false_fun are functions, got"),
        (lambda: lax.switch(1.0, [int, int]), TypeError, "the index is an integer scalar, got"),
        (lambda: lax.switch(0, []), ValueError, "at least one branch is needed"),
        (
            lambda: lax.associative_scan(lax.add, f32(1)),
            ValueError,
            "axis=0 names position 0, but the number of dimensions is 0",
        ),
    ],
)
def test_errors(run, error, text):
    with pytest.raises(error, match=re.escape(text)):
        run()


def test_the_length_of_a_scan_is_part_of_the_program():
    with pytest.raises(ConcretizationTypeError, match="is needed, but it is not known while tracing"):
        jit(lambda n: lax.scan(lambda c, _: (c, None), 0.0, length=n))(3)


# ---- while, fori, cond, switch


@pytest.mark.parametrize(
    ("bounds", "expected"), [((1, 5), "~int32[]"), ((np.int32(1), 5), "int32[]"), ((1, np.int32(5)), "~int32[]")]
)
def test_the_index_of_a_fori_loop_is_as_weakly_typed_as_its_lower_bound(bounds, expected):
    types = set()

    def body(i, x):
        types.add(str(aval_of(i)))
        return lax.add(x, x)

    assert int(lax.fori_loop(*bounds, body, np.int8(1))) == 16
    assert types == {expected}


def test_while_and_fori():
    assert int(lax.while_loop(lambda c: lax.lt(c, 10), lambda c: lax.mul(c, 3), 1)) == 27
    assert int(lax.fori_loop(2, 5, lambda i, c: lax.add(c, i), 0)) == 9
    assert int(lax.fori_loop(5, 2, lambda i, c: lax.add(c, i), 7)) == 7
    assert int(jit(lambda n: lax.fori_loop(0, n, lambda i, c: lax.add(c, i), 0))(5)) == 10
    names = lambda f, *args: [e.primitive.name for e in make_jaxpr(f)(*args).eqns]
    assert "scan" in names(lambda x: lax.fori_loop(0, 3, lambda i, c: c, x), 1.0)  # known bounds can be differentiated
    assert "while" in names(lambda x, n: lax.fori_loop(0, n, lambda i, c: c, x), 1.0, 3)


def test_branches():
    assert int(lax.cond(3, lambda: 1, lambda: 2)) == 1  # a number counts as true unless it is zero
    assert int(lax.cond(0.0, lambda: 1, lambda: 2)) == 2
    assert [int(lax.switch(i, [lambda: 0, lambda: 1, lambda: 2])) for i in (-3, 0, 1, 9)] == [0, 0, 1, 2]
    assert int(lax.switch(7, [lambda x: x], 5)) == 5
    weak, strong = lambda: 1, lambda: np.int32(2)
    for (
        out,
        expected,
    ) in [  # a weak and a strong type meet: the first branch decides, and false_fun is the first of cond
        (lax.cond(True, weak, strong), False),
        (lax.cond(True, strong, weak), True),
        (lax.switch(1, [weak, weak, strong]), True),
        (lax.switch(1, [strong, weak, weak]), False),
    ]:
        assert out.dtype == np.int32 and out.weak_type is expected
    assert lax.cond(True, lambda x: x, lambda x: lax.neg(x), operand=f32(3)) == 3


def test_branches_may_close_over_different_values():
    def f(p, x, y):
        return lax.cond(p, lambda: lax.mul(x, 2.0), lambda: lax.add(y, x))

    assert float(jit(f)(True, f32(3), f32(5))) == 6
    assert float(jit(f)(False, f32(3), f32(5))) == 8


# ---- map, associative_scan


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_associative_scan_is_a_scan(n):
    x = np.random.default_rng(n).normal(size=(2, n)).astype(f32)
    for axis in (1, -1):
        np.testing.assert_allclose(np.asarray(lax.associative_scan(lax.add, x, axis=axis)), np.cumsum(x, 1), rtol=1e-5)
    reverse = np.cumsum(x[:, ::-1], 1)[:, ::-1]
    np.testing.assert_allclose(
        np.asarray(lax.associative_scan(lax.add, x, axis=1, reverse=True)), reverse, rtol=1e-5, atol=1e-6
    )
    # an operation that does not commute: affine maps
    a, b = x[0], x[1]
    compose = lambda f, g: (lax.mul(f[0], g[0]), lax.add(lax.mul(f[1], g[0]), g[1]))
    _, out = lax.associative_scan(compose, (a, b))
    value, expected = 0.0, []
    for p, q in zip(a, b, strict=True):
        value = value * p + q
        expected.append(value)
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-4, atol=1e-5)


def test_map():
    np.testing.assert_allclose(np.asarray(lax.map(lambda x: lax.mul(x, x), X)), X * X)
    with pytest.raises(ValueError, match="batch_size must be a positive integer"):
        lax.map(lax.sin, X, batch_size=-1)


def test_loops_are_traced_once_per_function_and_type():
    calls = []

    def body(c, x):
        calls.append(1)
        return lax.add(c, x), None

    for _ in range(3):
        lax.scan(body, f32(0), X)
    assert len(calls) == 1


def test_parts_of_a_loop_that_no_step_changes_are_constants():
    """A part that the condition reads stays in the carry, and so does one whose place another part takes."""

    def loop(scale, limit, a, b):
        return lax.while_loop(
            lambda c: lax.lt(c[0], c[2]),
            lambda c: (lax.add(c[0], c[1]), c[1], c[2], c[4], c[3]),
            (0.0, scale, limit, a, b),
        )

    (eqn,) = make_jaxpr(loop)(*map(np.float32, (2, 7, 1, 3))).eqns
    assert eqn.params["body_nconsts"] == 1 and len(eqn.outvars) == 4
    assert [float(x) for x in loop(*map(np.float32, (2, 7, 1, 3)))] == [8, 2, 7, 1, 3]
    assert aval_of(lax.while_loop(lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), c[1]), (0, 1.5))[1]).weak_type
