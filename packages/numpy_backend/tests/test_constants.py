"""NumPy arrays that a traced function uses: each is copied once, when it is used."""

import warnings

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import staging
from bedrax.core.exact import same_bits
from bedrax.core.ir import eval_jaxpr

DTYPES = ["float32", "float64", "int8", "complex64", "bool", "float16"]


def traced(f, x):
    return staging.make_jaxpr(f)(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_used_often_is_one_constant_that_is_hashed_once(dtype):
    hashed = []

    class Constants(dict):
        def get(self, key, default=None):
            if type(key) is tuple:
                hashed.append(key)
            return super().get(key, default)

    array = np.arange(6).reshape(2, 3).astype(dtype)

    def f(x):
        x._trace.const_vars = Constants()
        for _ in range(5):
            x = lax.max(x, array) if dtype != "complex64" else lax.add(x, array)
        return x

    program = traced(f, array)
    assert len(hashed) == 1
    assert len(program.consts) == 1
    assert np.asarray(program.consts[0]).tolist() == array.tolist()


def test_equal_arrays_are_one_constant():
    program = traced(lambda x: [x + np.arange(3.0), x + np.arange(3.0), x + np.arange(1.0, 4)], np.ones(3, "f"))
    assert len(program.consts) == 2


def test_a_freed_array_leaves_only_its_constant():
    def f(x):
        for i in range(5):
            x = x + np.full(3, i % 2, "f")
            assert not x._trace.arrays
        kept = np.ones(3)
        x = x + kept
        assert len(x._trace.arrays) == 1
        return x

    assert len(traced(f, np.ones(3, "f")).consts) == 2


def test_numbers_beyond_the_dtype_become_infinite():
    wide = np.array([1e300, -1e300, 1.0])
    program = traced(lambda x: x + wide, np.ones(3, "f"))
    assert program.consts[0].tolist() == [np.inf, -np.inf, 1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.T, lambda a: a[:, ::2]])
def test_an_array_that_is_written_to_while_a_function_is_traced_is_used_as_it_was(dtype, view):
    whole = np.zeros((3, 3), dtype)
    array = view(whole)

    def f(x):
        out = [x + array]
        whole[:] = 1
        out += [x + array, x + array]
        whole[0, 0] = np.nan
        out += [x + array, x + array]
        whole[:] = 0
        return [*out, x + array]

    x = np.zeros(array.shape, "f")
    program = traced(f, x)
    whole[:] = 7
    outs = [np.asarray(out) for out in eval_jaxpr(program.jaxpr, program.consts, x)]
    assert [float(out[-1, -1]) for out in outs] == [0, 1, 1, 1, 1, 0]
    assert [bool(np.isnan(out[0, 0])) for out in outs] == [False, False, False, True, True, False]
    assert len(program.consts) == 3


def test_an_array_that_changes_its_shape_while_a_function_is_traced():
    array = np.arange(4.0, dtype="f")

    def f(x):
        first = lax.reshape(x, (4,)) + array
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5
            array.shape = (2, 2)
        return first, lax.reshape(x, (2, 2)) + array

    assert [a.shape for a in traced(f, np.zeros(4, "f")).out_avals] == [(4,), (2, 2)]


@pytest.mark.parametrize("dtype", [*DTYPES, "S3", "datetime64[s]"])
def test_same_bits(dtype):
    a = np.arange(5).astype(dtype)
    b = a.copy()
    assert same_bits(a, b)
    assert same_bits(a[:0], b[:0])
    assert not same_bits(a, b[:4])
    assert not same_bits(a, b.view("V1"))
    b[3] = b[2]
    assert same_bits(a, b) == (dtype == "bool")


def test_bits_are_compared_and_not_values():
    assert not same_bits(np.array([0.0]), np.array([-0.0]))
    assert same_bits(np.array([np.nan]), np.array([np.nan]))
