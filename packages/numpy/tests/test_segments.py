"""Reductions over segments against loops in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from bedrax import numpy as jnp
from bedrax.autodiff import grad
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.jitting import jit
from bedrax.numpy import segments

KINDS = {"sum": (np.add, 0), "prod": (np.multiply, 1), "min": (np.minimum, np.inf), "max": (np.maximum, -np.inf)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(7,), (7, 2, 3)])
@pytest.mark.parametrize("bucket", [None, 3])
def test_segments(kind, shape, bucket):
    ufunc, identity = KINDS[kind]
    data = np.random.RandomState(0).uniform(0.5, 2, shape).astype(np.float32)
    ids = np.array([0, 3, 3, -1, 9, 1, 0])
    expected = np.full((5, *shape[1:]), identity, np.float32)
    for i, x in zip(ids, data, strict=True):
        if 0 <= i < 5:
            expected[i] = ufunc(expected[i], x)
    f = getattr(segments, f"segment_{kind}")
    for call in (f, jit(f, static_argnames=("num_segments", "bucket_size"))):
        np.testing.assert_allclose(call(data, ids, num_segments=5, bucket_size=bucket), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "bfloat16", "bool"])
def test_segments_of_nothing_by_dtype(dtype):
    data = np.array([1, 1]).astype(jnp.dtype(dtype) if dtype != "bfloat16" else jnp.bfloat16)
    low, high = (segments.segment_max(data, np.array([0, 0]), 2), segments.segment_min(data, np.array([0, 0]), 2))
    assert low.dtype == high.dtype == data.dtype
    assert low[0] == high[0] == 1
    assert low[1] <= jnp.zeros((), data.dtype) < high[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bucket", [None, 2])
def test_one_element_is_repeated_for_all_segment_ids(kind, bucket):
    f, ids = getattr(segments, f"segment_{kind}"), np.array([0, 2, 2])
    for data in (np.float32(3), np.full((1, 2), 3, np.float32)):
        whole = np.broadcast_to(data, (3, *data.shape[1:]))
        np.testing.assert_array_equal(f(data, ids, 3, bucket_size=bucket), f(whole, ids, 3))


def test_number_of_segments():
    assert segments.segment_sum(np.ones(3, np.float32), np.array([0, 4, 1])).shape == (5,)
    with pytest.raises(ConcretizationTypeError, match="num_segments"):
        jit(segments.segment_sum)(np.ones(3), np.array([0, 4, 1]))
    with pytest.raises(ValueError, match="non-negative"):
        segments.segment_sum(np.ones(3), np.array([0, 0, 1]), -1)
    with pytest.raises(ValueError, match="leading axis"):
        segments.segment_sum(np.ones(3), np.array([0, 0]))
    with pytest.raises(TypeError, match="integers"):
        segments.segment_sum(np.ones(2), np.array([0.0, 1.0]))
    clipped = segments.segment_sum(np.ones(3, np.float32), np.array([0, 0, 9]), 3, mode="clip")
    np.testing.assert_array_equal(clipped, [2, 0, 1])


def test_segment_gradient():
    ids = np.array([0, 0, 2, -1])
    d = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    got = grad(lambda d: jnp.sum(segments.segment_sum(d, ids, 3) ** 2))(d)
    np.testing.assert_allclose(got, [6, 6, 6, 0])


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_min", "segment_max"])
def test_a_scalar_segment_number_needs_scalar_data(name):
    segment = getattr(segments, name)
    np.testing.assert_array_equal(segment(np.float32(3), np.int32(1), 2), segment(np.float32([3]), np.int32([1]), 2))
    with pytest.raises(ValueError, match="must number the leading axis"):
        segment(np.ones(3, np.float32), np.int32(1), 2)
