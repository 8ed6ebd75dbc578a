"""The positions of extreme elements along axes that a CPU cuts into blocks."""

import ml_dtypes
import numpy as np
import pytest

import bedrax.xla_backend  # noqa: F401  (the executor)
from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.numpy_backend.executor import evaluate

DTYPES = ["bool", "int8", "uint8", "int32", "uint16", "float16", "float32", ml_dtypes.bfloat16, ml_dtypes.int4]


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.float8_e4m3fn], ids=str)
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((63,), 0),
        ((256,), 0),
        ((1024,), 0),
        ((1025,), 0),
        ((70001,), 0),
        ((3, 2000), 1),
        ((2000, 3), 0),
        ((2, 1300, 3), 1),
    ],
)
@pytest.mark.parametrize("function, expected", [(lax.argmax, np.argmax), (lax.argmin, np.argmin)], ids=["max", "min"])
def test_positions_of_extremes(function, expected, dtype, shape, axis):
    """Values occur often, and the first one counts."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "bool" else 7, shape).astype(dtype)
    found = jit(lambda x: function(x, axis, np.int32))(x)
    np.testing.assert_array_equal(found, expected(x.astype(np.float32), axis))


@pytest.mark.parametrize("dtype", [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4])
def test_positions_of_extremes_of_narrow_integers(dtype):
    info = ml_dtypes.iinfo(dtype)
    x = np.array([[0, info.max, info.max], [info.min, info.max, info.min]], np.int8).astype(dtype)
    assert np.asarray(jit(lambda x: lax.argmax(x, 1, np.int32))(x)).tolist() == [1, 1]
    assert np.asarray(jit(lambda x: lax.argmin(x, 1, np.int32))(x)).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4])
def test_narrow_integers_are_reduced_together_with_others(dtype):
    info = ml_dtypes.iinfo(dtype)
    x = np.array([[info.min, info.max, 1], [0, info.max, 1]], np.int8).astype(dtype)
    y = np.array([[1, 2, 3], [4, 5, 6]], np.float32)

    def step(a, b):  # the sum of narrow integers wraps around
        return lax.add(a[0], b[0]), lax.add(a[1], b[1]), lax.max(a[2], b[2])

    reduced = lambda x, y: lax.reduce((x, y, x), (dtype(0), np.float32(0), dtype(0)), step, (1,))
    wanted = evaluate(make_jaxpr(reduced)(x, y), x, y)
    for found, want in zip(jit(reduced)(x, y), wanted, strict=True):
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(found).astype(np.float32), np.asarray(want).astype(np.float32))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("n", [64, 1024, 70001])
def test_the_first_nan_is_extreme(n, value):
    for places in ([], [n - 1], [n // 2, n - 1], [0, n // 3]):
        x = np.full(n, value, np.float32)
        x[places] = np.nan
        for function in (lax.argmax, lax.argmin):
            assert int(jit(lambda x, f=function: f(x, 0, np.int32))(x)) == (places[0] if places else 0)


@pytest.mark.parametrize("shape, axis", [((4096,), 0), ((64, 4096), 1), ((4096, 64), 0)])
def test_positions_are_not_written_out(shape, axis):
    """The memory besides the operand is a small part of it, although positions have four times its size."""
    x = np.zeros(shape, np.int8)
    program = jit(lambda x: lax.argmax(x, axis, np.int32)).lower(x).compile()
    assert program.memory_analysis().temp_size_in_bytes < x.size


def test_elements_are_not_compared_with_the_extreme_of_another_reduction():
    """XLA may compute the operand again for a second pass, rounded otherwise. Then no element was equal to the extreme, and
    the position was 2**31 - 1 (jaxlib 0.12.0.1, in the search of a tree over four actions)."""
    for find in (lax.argmax, lax.argmin):
        text = jit(lambda x, find=find: find(x, 0, np.int32)).lower(np.ones(4, np.float32)).as_text()
        assert text.count("stablehlo.reduce") == 1, text
