"""Indexing beyond the records: defaults, negative indices, and errors."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedrax import lax
from bedrax.core import config, staging
from bedrax.core.avals import aval_of

X = np.arange(12, dtype=np.float32).reshape(3, 4)
I = np.array([[0], [2]], np.int32)
GATHER = lax.GatherDimensionNumbers((1,), (0,), (0,))
SCATTER = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def stage(fun, *args):
    return staging.program_of(lambda *xs: [fun(*xs)], [aval_of(a) for a in args])


def test_modes_by_name():
    mode = lax.GatherScatterMode
    assert [mode.from_any(s) for s in ("clip", "fill", "drop", "promise_in_bounds", None)] == [
        mode.CLIP,
        mode.FILL_OR_DROP,
        mode.FILL_OR_DROP,
        mode.PROMISE_IN_BOUNDS,
        mode.FILL_OR_DROP,
    ]
    with pytest.raises(ValueError, match="there are clip, fill, drop, promise_in_bounds, one_hot"):
        mode.from_any("foo")


@pytest.mark.parametrize(
    "dtype, fill",
    [
        ("bool", True),
        ("int8", -128),
        ("uint8", 255),
        ("int4", -8),
        ("float32", np.nan),
        ("bfloat16", np.nan),
        ("complex64", np.nan),
    ],
)
def test_default_fill(dtype, fill):
    out = np.asarray(lax.gather(X.astype(dtype), I + 5, GATHER, (1, 4), mode="fill"))
    np.testing.assert_array_equal(out.astype(np.complex64), np.full((2, 4), fill, np.complex64))


def test_parameters_of_equal_gathers_are_equal():
    def params_of(fill):
        return stage(lambda x: lax.gather(x, I, GATHER, (1, 4), mode="fill", fill_value=fill), X).eqns[0].params

    params = [params_of(fill) for fill in (None, float("nan"), np.float32("nan"))]
    assert params[0] == params[1] == params[2]
    assert len({tuple(sorted(p.items(), key=lambda kv: kv[0])) for p in params}) == 1


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 3), st.integers(0, 4))
def test_dynamic_slice_is_moved_inside(i, j, m, n):
    wrapped = (i + 3 if i < 0 else i, j + 4 if j < 0 else j)
    a, b = (min(max(k, 0), bound) for k, bound in zip(wrapped, (3 - m, 4 - n), strict=True))
    expected = X[a : a + m, b : b + n]
    np.testing.assert_array_equal(lax.dynamic_slice(X, (i, j), (m, n)), expected)
    np.testing.assert_array_equal(lax.dynamic_slice(X, np.array([i, j], np.int8), (m, n)), expected)
    updated = X.copy()
    updated[a : a + m, b : b + n] = -1
    out = lax.dynamic_update_slice(X, np.full((m, n), -1, np.float32), (np.int32(i), np.int32(j)))
    np.testing.assert_array_equal(out, updated)


def test_negative_indices_may_be_out_of_bounds_instead():
    np.testing.assert_array_equal(
        lax.dynamic_slice(X, (-1, -1), (1, 2), allow_negative_indices=(True, False)), X[2:, :2]
    )
    np.testing.assert_array_equal(lax.dynamic_index_in_dim(X, -2, 1, keepdims=False), X[:, 2])
    np.testing.assert_array_equal(lax.dynamic_index_in_dim(X, -2, 1, allow_negative_indices=False), X[:, :1])


def test_static_indices_need_no_operation():
    jaxpr = stage(lambda x: lax.dynamic_slice(x, (-1, 2), (1, 2)), X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["dynamic_slice"]
    jaxpr = stage(lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 2)), X, np.uint8(3))
    assert [e.primitive.name for e in jaxpr.eqns] == ["dynamic_slice"]


def test_scatter_apply_is_applied_once_per_occurrence():
    out = lax.scatter_apply(
        X, np.array([[1], [1]], np.int32), lambda v: lax.mul(v, np.float32(2)), SCATTER, update_shape=(2, 4)
    )
    np.testing.assert_array_equal(out, X * np.float32([[1], [4], [1]]))


@pytest.mark.parametrize(
    "fun, error, message",
    [
        (lambda x: lax.gather(x, I, GATHER, (1, 5)), TypeError, "it must be in"),
        (lambda x: lax.gather(x, I, GATHER, (1,)), TypeError, "slice_sizes has one entry per axis"),
        (lambda x: lax.gather(x, I, GATHER, (2, 4)), TypeError, "is collapsed, so its slice size is"),
        (lambda x: lax.gather(x, I * 1.0, GATHER, (1, 4)), ValueError, "indices must be integers, got float"),
        (
            lambda x: lax.gather(x, I, GATHER._replace(start_index_map=(0, 1)), (1, 4)),
            TypeError,
            "elements, and start_index_map has",
        ),
        (lambda x: lax.gather(x, I, GATHER._replace(offset_dims=(3,)), (1, 4)), TypeError, "offset_dims must be axes"),
        (lambda x: lax.gather(x, I, GATHER, (1, 4), mode="one_hot"), NotImplementedError, "one_hot"),
        (lambda x: lax.scatter(x, I, X[:1], SCATTER), TypeError, "one window per index vector"),
        (
            lambda x: lax.scatter(x, I, np.ones((2, 4), np.int32), SCATTER),
            TypeError,
            "operand and updates have one dtype, got float",
        ),
        (
            lambda x: lax.scatter(x, I, np.ones((2, 5), np.float32), SCATTER),
            TypeError,
            "do not fit an operand of shape",
        ),
        (lambda x: lax.dynamic_slice(x, (1,), (1, 2)), ValueError, "start indices for rank"),
        (lambda x: lax.dynamic_slice(x, (1, 1), (1, 5)), TypeError, "do not fit into shape"),
        (
            lambda x: lax.dynamic_slice(x, (1.0, 1), (1, 2)),
            TypeError,
            "start indices are integers of one dtype, got float",
        ),
        (
            lambda x: lax.dynamic_slice(x, (np.int32(1), np.int8(1)), (1, 2)),
            TypeError,
            "start indices are integers of one dtype, got int",
        ),
        (lambda x: lax.dynamic_slice(x, (np.arange(2), 1), (1, 2)), TypeError, "start indices are scalars, got int32"),
        (lambda x: lax.dynamic_update_slice(x, np.ones((5, 5), np.float32), (0, 0)), TypeError, "does not fit into"),
        (lambda x: lax.dynamic_update_slice(x, np.ones(5, np.float32), (0, 0)), TypeError, "the ranks must be equal"),
        (lambda x: lax.dynamic_index_in_dim(x, 1, 5), ValueError, "axis 5 is out of bounds"),
    ],
)
def test_errors(fun, error, message):
    with pytest.raises(error, match=re.escape(message)):
        stage(fun, X)


@pytest.mark.parametrize("size", [5, 300])
def test_positions_of_index_take_wrap_around_in_their_own_dtype(size):
    x = np.arange(size, dtype=np.float32)
    for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64):
        info = np.iinfo(dtype)
        index = np.array([info.min, info.max, info.max - 7, 3], dtype)
        with config.enable_x64(True):
            found = np.asarray(lax.index_take(x, (index,), (0,)))
        assert found.tolist() == [int(i) % size for i in index], dtype


def test_a_complex_value_fills_only_complex_windows():
    with pytest.raises(TypeError, match="fill_value is complex, got 1j for elements of float32"):
        lax.gather(X, I, GATHER, (1, 4), mode="fill", fill_value=1j)
    far = np.array([[7]], np.int32)
    filled = lax.gather(X.astype(np.complex64), far, GATHER, (1, 4), mode="fill", fill_value=1j)
    assert np.asarray(filled).tolist() == [[1j] * 4]


def test_an_updated_array_is_strongly_typed():
    row = lax.broadcast(1.5, (4,))
    updated = lax.dynamic_update_slice(row, lax.slice_in_dim(row, 0, 1), (2,))
    assert aval_of(row).weak_type and not aval_of(updated).weak_type
