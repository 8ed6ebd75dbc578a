"""Operators with core alone: arithmetic, comparison, promotion and deferral, without bedrax.numpy."""

import operator
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax

PROGRAMS = Path(__file__).with_name("programs")

X = np.array([[-3.0, 0.5, 2.0], [7.0, -0.25, 1.0]], np.float32)
Y = np.array([2.0, -0.5, 3.0], np.float32)
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
BITS = [operator.and_, operator.or_, operator.xor, operator.add, operator.mul, operator.floordiv, operator.mod]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", [Y, 2, 2.5, np.float32(3)], ids=["array", "int", "float", "numpy"])
def test_operators_are_numpys(op, other):
    x = lax.asarray(X)
    for y in (other, lax.asarray(other)) if isinstance(other, np.ndarray) else (other,):
        np.testing.assert_allclose(np.asarray(op(x, y)), op(X, other), rtol=1e-6)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(np.asarray(op(y, x)), op(other, X), rtol=1e-6)


@pytest.mark.parametrize("op", BITS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_operators_of_integers(op, dtype):
    x, y = np.arange(1, 7).astype(dtype), np.arange(6, 0, -1).astype(dtype)
    got = op(lax.asarray(x), lax.asarray(y))
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got), op(x, y))


def test_unary_and_shifts():
    x = lax.asarray(np.array([-5, 3], np.int32))
    assert (-x).tolist() == [5, -3] and (+x).tolist() == [-5, 3] and abs(x).tolist() == [5, 3]
    assert (~x).tolist() == [4, -4] and (x >> 1).tolist() == [-3, 1] and (x << 2).tolist() == [-20, 12]
    assert (lax.asarray(np.uint8([200])) >> 3).tolist() == [25]


def test_division_of_integers_by_zero_does_not_fail():
    x = lax.asarray(np.array([3, -3, 0], np.int32))
    assert (x % 0).tolist() == [0, 0, 0]
    assert (x // 0).shape == (3,)


def test_arithmetic_needs_no_numpy_api():
    code = PROGRAMS / "arithmetic_without_numpy_api.py"
    subprocess.run([sys.executable, code], check=True)


@pytest.mark.parametrize("container", [[1, 2], (1, 2), {}, set()], ids=["list", "tuple", "dict", "set"])
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "add", "mul"])
def test_containers_are_no_operands(name, container):
    """Python finds them unequal to all arrays, and repeats lists by an integer array of rank 0."""
    combine = getattr(operator, name)
    for x in (lax.asarray(np.int32(2)), lax.asarray(np.float32([1, 2]))):
        for a, b in ((x, container), (container, x)):
            with pytest.raises(TypeError, match="an array or a number is needed, got"):
                combine(a, b)
    assert (x == None) is False and x != "text"  # noqa: E711


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint8, np.uint32])
def test_an_infinite_start_of_a_reduction_of_integers_is_the_end_of_their_range(dtype):
    x = np.array([-5, -7] if np.issubdtype(dtype, np.signedinteger) else [5, 7], dtype)
    for function, start, expected in ((lax.max, -np.inf, x.max()), (lax.min, np.inf, x.min())):
        assert lax.reduce(x, start, function, (0,)) == expected
        assert lax.reduce_window(x, start, function, (2,), (1,), "VALID") == expected
