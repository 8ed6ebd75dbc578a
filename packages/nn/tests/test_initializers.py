"""Initializers: shapes, dtypes, moments, orthogonality."""

import numpy as np
import pytest

from bedrax import random
from bedrax.nn import initializers

KEY = random.key(0)


@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("mode,n", [("fan_in", 80), ("fan_out", 20), ("fan_avg", 50), ("fan_geo_avg", 40)])
def test_variance_scaling(distribution, dtype, mode, n):
    init = initializers.variance_scaling(2.0, mode, distribution)
    w = np.asarray(init(KEY, (2, 40, 10), dtype))
    assert w.shape == (2, 40, 10) and w.dtype == dtype
    assert abs(w.mean()) < 0.03
    np.testing.assert_allclose(np.mean(np.abs(w) ** 2), 2.0 / n, rtol=0.12)


@pytest.mark.parametrize("name", ["glorot", "xavier", "he", "kaiming", "lecun"])
@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_named(name, distribution):
    w = np.asarray(getattr(initializers, f"{name}_{distribution}")()(KEY, (40, 20)))
    n = {"lecun": 40, "he": 20, "kaiming": 20}.get(name, 30)
    np.testing.assert_allclose(w.var(), 1 / n, rtol=0.15)
    assert w.dtype == np.float32


def test_constant_uniform_and_normal_initializers():
    assert initializers.zeros(KEY, (2,)).tolist() == [0, 0]
    assert initializers.ones(KEY, (2,), np.int32).dtype == np.int32
    assert initializers.constant(3.0)(KEY, (2,)).tolist() == [3, 3]
    assert initializers.constant(np.array([1, 2]))(KEY, (2, 2)).tolist() == [[1, 2], [1, 2]]
    u = np.asarray(initializers.uniform(2.0)(KEY, (500,)))
    assert u.min() >= 0 and 1.9 < u.max() <= 2
    assert abs(np.asarray(initializers.normal(3.0)(KEY, (2000,))).std() - 3) < 0.2
    t = np.asarray(initializers.truncated_normal(1.0, lower=-1.0, upper=1.5)(KEY, (500,)))
    assert t.min() >= -1 and t.max() <= 1.5
    assert initializers.normal(dtype=np.float16)(KEY, (2,)).dtype == np.float16


@pytest.mark.parametrize("axes", [(), [], {}, frozenset()])
def test_no_axis_of_inputs(axes):
    init = initializers.variance_scaling(1.0, "fan_in", "uniform", in_axis=axes)
    largest = np.abs(np.asarray(init(KEY, (100, 3)))).max()
    assert 0.15 < largest <= np.sqrt(3 / 100)  # all axes but that of the outputs are a receptive field


def test_batch_axis():
    w = np.asarray(initializers.lecun_normal(batch_axis=0)(KEY, (10, 20, 30)))
    np.testing.assert_allclose(w.var(), 1 / 20, rtol=0.1)
    w = np.asarray(initializers.lecun_normal(in_axis=(0, 1))(KEY, (10, 2, 30)))
    np.testing.assert_allclose(w.var(), 1 / 20, rtol=0.15)
    assert initializers.lecun_normal()(KEY, (0, 2)).shape == (0, 2)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (4, 4), (2, 3, 2)])
@pytest.mark.parametrize("column_axis", [-1, 0])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_orthogonal(shape, column_axis, dtype):
    w = np.asarray(initializers.orthogonal(2.0, column_axis)(KEY, shape, dtype))
    assert w.shape == shape and w.dtype == dtype
    m = np.moveaxis(w, column_axis, -1).reshape(-1, shape[column_axis])
    product = m.conj().T @ m if m.shape[0] >= m.shape[1] else m @ m.conj().T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-4)


def test_delta_orthogonal():
    w = np.asarray(initializers.delta_orthogonal()(KEY, (3, 5, 2, 4)))
    np.testing.assert_allclose(w[1, 2] @ w[1, 2].T, np.eye(2), atol=1e-5)
    assert np.count_nonzero(w.any(axis=(2, 3))) == 1
    with pytest.raises(ValueError, match="rank 3, 4 or 5"):
        initializers.delta_orthogonal()(KEY, (3, 3))
    with pytest.raises(ValueError, match="as many outputs as inputs"):
        initializers.delta_orthogonal()(KEY, (3, 4, 2))


@pytest.mark.parametrize(
    "init,shape,text",
    [
        (initializers.lecun_normal(), (3,), "needs two axes"),
        (initializers.variance_scaling(1.0, "fan", "normal"), (3, 3), "mode is one of"),
        (initializers.variance_scaling(1.0, "fan_in", "cauchy"), (3, 3), "distribution is"),
        (initializers.orthogonal(), (3,), "orthogonal makes matrices"),
    ],
)
def test_errors(init, shape, text):
    with pytest.raises(ValueError, match=text):
        init(KEY, shape)


def test_orthogonal_refuses_a_column_axis_beyond_the_rank():
    with pytest.raises(ValueError, match="column_axis=5"):
        initializers.orthogonal(column_axis=5)(random.key(0), (2, 2))
