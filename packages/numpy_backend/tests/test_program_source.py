"""Programs as Python source: the text, its use of memory, and its errors."""

import gc
import sys
import traceback
import tracemalloc
import weakref

import numpy as np
import pytest

from bedrax import lax, numpy_backend
from bedrax.core import ir
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.callbacks import pure_callback
from bedrax.numpy_backend.program_source import compiled, evaluate
from bedrax.numpy_backend.tables import numpy_rules

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_source():
    def f(x, y):
        return lax.mul(lax.add(lax.sin(x), y), np.float32(2.5))

    assert numpy_backend.source_of(f)(X, X) == (
        "def f(a, b):  # f32[2,3], f32[2,3]\n"
        "    c = np.sin(a)  # f32[2,3]\n"
        "    d = c + b  # f32[2,3]\n"
        "    e = d * _2_5  # f32[2,3]\n"
        "    return [e]\n"
    )


def test_large_values_are_deleted_after_their_last_use():
    text = numpy_backend.source_of(lambda x: lax.mul(lax.sin(lax.cos(x)), x))(np.ones(1000, np.float32))
    lines = [line.split("  #")[0].strip() for line in text.splitlines()]
    assert lines[1:] == ["b = np.cos(a)", "c = np.sin(b)", "del b", "d = c * a", "del c", "return [d]"]


def test_exactly_rounded_operations_overwrite_large_operands_that_end():
    f = lambda x: lax.exp(lax.mul(lax.add(x, x), lax.sub(x, lax.sin(x))))
    text = numpy_backend.source_of(f)(np.ones(5000, np.float32))
    lines = [line.split("  #")[0].strip() for line in text.splitlines()]
    assert lines[1:] == [
        "b = a + a",
        "c = np.sin(a)",
        "d = np.subtract(a, c, c)",
        "del c",
        "e = np.multiply(b, d, b)",
        "del b, d",
        "f = np.exp(e)",  # another loop of NumPy may give another last bit
        "del e",
        "return [f]",
    ]


LARGE = np.random.default_rng(0).normal(size=(50, 60)).astype(np.float32)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: [x + x, x * x],
        lambda x: [(y := x + x), y * x],  # a result
        lambda x: [y := x + x, lax.neg(lax.reshape(y, (60, 50)))],
        lambda x: [(v := lax.reshape(x + x, (60, 50))), lax.neg(v)],
        lambda x: [v := lax.transpose((y := x + x), (1, 0)), y * x, lax.neg(v)],  # a view is used later
        lambda x: [lax.neg(v := lax.slice((y := x * x), (0, 0), (40, 60))), v + 1.0, y + x],
        lambda x: [(y := lax.sub(x, 1.0)) * y + y],
        lambda x: [lax.stop_gradient(y := x + x) + 1.0, lax.neg(y)],
        lambda x: [(y := x + x) * 2.0 - lax.reduce_sum(y, (0, 1))],
        lambda x: [lax.convert_element_type(y := x + x, np.float16), lax.convert_element_type(y, np.int32) + 1],
        lambda x: [lax.lt(y := x + x, x), lax.select(lax.lt(y, x), y, x) + y],
        lambda x: [
            lax.add(lax.broadcast_in_dim(lax.exp(lax.index_in_dim(x, 0, keepdims=False)), (50, 60), (1,)), x + x)
        ],
        lambda x: [lax.complex(y := x + x, x) * 1j, y],
        lambda x: lax.scan(lambda c, row: (c + row, c * row), lax.index_in_dim(x, 0, keepdims=False), x),
        lambda x: [lax.fori_loop(0, 3, lambda i, c: (c + x) * c - x, x * x)],
    ],
)
def test_values_that_are_used_again_are_not_overwritten(f):
    x, given = LARGE, LARGE.copy()
    eager = f(lax.asarray(x))
    compiled = jit(f)(x)
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    np.testing.assert_array_equal(x, given)
    again = jit(f)(lax.asarray(x))
    np.testing.assert_array_equal(np.asarray(again[0]), np.asarray(compiled[0]))


def test_programs_inside_are_functions():
    @jit
    def inner(x):
        return lax.sin(x)

    def f(x):
        return lax.add(inner(x), lax.fori_loop(0, 3, lambda i, c: lax.cos(c), x))

    text = numpy_backend.source_of(f)(X)
    assert text.count("def ") == 3 and "[b] = inner(a)" in text and "scan(" in text and "np.cos(" in text


def test_rules_of_libraries_are_called():
    p = Primitive("twice_of_a_library")
    p.def_abstract_eval(lambda x, times: x)
    numpy_rules.add(p, lambda x, *, times: x * times)
    f = lambda x: p.bind(x, times=2)
    assert "twice_of_a_library(a, times=2)" in numpy_backend.source_of(f)(X)
    np.testing.assert_array_equal(np.asarray(jit(f)(X)), 2 * X)


@pytest.mark.parametrize("run", ["jit", "eval_jaxpr"])
def test_a_program_uses_no_more_memory_than_its_eager_run(run):
    def chain(a):
        for _ in range(50):
            a = lax.add(a, np.float32(1))
        return a

    x = np.ones(1_000_000, np.float32)
    program = make_jaxpr(chain)(x)
    fun = jit(chain) if run == "jit" else lambda x: ir.run(program, x)
    fun(x)
    tracemalloc.start()
    try:
        fun(x)
        assert tracemalloc.get_traced_memory()[1] < 3 * x.nbytes  # 50 results without it
    finally:
        tracemalloc.stop()


def test_scalars_become_arrays_where_rules_expect_them():
    def f(x):
        y = lax.add(x, x)
        return lax.sort(lax.broadcast(y, (3,))), lax.bitcast_convert_type(y, np.int32), y

    program = make_jaxpr(f)(np.float32(1))
    for out, aval in zip(evaluate(program, np.asarray(1, np.float32)), program.out_avals, strict=True):
        assert type(out) is np.ndarray and (out.shape, out.dtype) == (aval.shape, aval.dtype)


def test_literals_have_their_own_types():
    def f(x, i):
        return (
            lax.add(x, np.float32(1)),
            lax.add(i, np.int32(1)),
            lax.mul(x, np.float32(np.inf)),
            lax.add(x, np.float32(-0.0)),
        )

    a, b, c, d = jit(f)(np.negative(np.zeros(2, np.float32)), np.arange(2, dtype=np.int32))
    assert (a.dtype, b.dtype) == (np.float32, np.int32)
    assert np.isnan(np.asarray(c)).all() and np.signbit(np.asarray(d)).all()


def test_no_warnings():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(np.asarray(jit(lambda x: lax.div(np.float32(1), x))(np.float32(0))))
        assert np.asarray(jit(lambda x: lax.add(x, x))(np.int32(2**31 - 1))) == -2


def test_an_error_names_the_users_line():
    def fail(x):
        raise ValueError("no such thing")

    def f(x):
        y = lax.sin(x)
        return pure_callback(fail, y, y)  # this line

    with pytest.raises(ValueError, match="no such thing") as caught:
        jit(f)(X)
    line = f.__code__.co_firstlineno + 2
    assert any(f"{__file__}:{line} (f)" in note for note in caught.value.__notes__)
    assert "in fail" in "".join(traceback.format_exception(caught.value))


def test_the_python_function_is_freed_with_its_program():
    program = make_jaxpr(lambda x: lax.sin(lax.cos(x)))(X)
    evaluate(program, X)
    function = weakref.ref(compiled(program).function)
    gc.collect()
    gc.disable()
    try:
        del program
        assert function() is None  # freed immediately: there is no reference cycle
    finally:
        gc.enable()


def test_many_equations():
    def chain(x):
        for _ in range(5000):
            x = lax.add(x, x)
        return lax.sin(x)

    program = make_jaxpr(chain)(np.float32(0))
    assert evaluate(program, np.asarray(0, np.float32))[0] == 0
    names = compiled(program).function.__code__.co_varnames
    assert len(set(names)) == len(names) == 5002 and not {"if", "in", "is", "as", "or", "np"} & set(names)
    assert sys.getrecursionlimit() < 5000


@pytest.mark.parametrize(
    ("given", "shape", "axes"),
    [
        ((), (1,), ()),
        ((), (2, 1), ()),
        ((1,), (1, 1), (0,)),
        ((3,), (3, 1), (0,)),
        ((3,), (2, 3), (1,)),
        ((3,), (3,), (0,)),
        ((2, 1), (2, 700), (0, 1)),
    ],
)
def test_broadcasting(given, shape, axes):
    x = np.arange(np.prod(given), dtype=np.float32).reshape(given)
    (out,) = evaluate(make_jaxpr(lambda x: lax.broadcast_in_dim(x, shape, axes))(x), x)
    np.testing.assert_array_equal(out, np.asarray(lax.broadcast_in_dim(x, shape, axes)))
    assert out.shape == shape
