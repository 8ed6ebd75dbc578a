"""Layers: `init` returns the shapes of the outputs; values computed by hand."""

import numpy as np
import pytest

from bedrax import random
from bedrax.libraries import stax

X = np.random.default_rng(0).standard_normal((2, 8, 8, 3)).astype(np.float32)
LAYERS = {
    "conv": stax.Conv(5, (3, 3), strides=(2, 2), padding="SAME"),
    "transpose": stax.ConvTranspose(4, (3, 3), strides=(2, 2)),
    "norm": stax.BatchNorm(),
    "max": stax.MaxPool((2, 2), strides=(2, 2)),
    "mean": stax.AvgPool((3, 3), padding="SAME"),
    "deep": stax.serial(stax.Conv(4, (3, 3)), stax.Relu, stax.Flatten, stax.Dense(7), stax.LogSoftmax),
    "fan": stax.serial(stax.FanOut(2), stax.parallel(stax.Identity, stax.Tanh), stax.FanInConcat()),
    "sum": stax.serial(stax.FanOut(2), stax.parallel(stax.Identity, stax.Identity), stax.FanInSum),
    "dropout": stax.Dropout(0.5),
    "shape": stax.shape_dependent(lambda shape: stax.Dense(shape[-1] * 2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_shapes(name):
    init, apply = LAYERS[name]
    shape, params = init(random.key(0), X.shape)
    assert apply(params, X, rng=random.key(1)).shape == tuple(shape)
    assert init(random.key(0), (-1, *X.shape[1:]))[0][0] == -1


def test_values():
    run = lambda layer: np.asarray(layer[1](layer[0](random.key(0), X.shape)[1], X, rng=random.key(1)))
    np.testing.assert_allclose(run(LAYERS["max"])[0, 0, 0], X[0, :2, :2].max((0, 1)))
    np.testing.assert_allclose(run(LAYERS["mean"])[0, 0, 0], X[0, :2, :2].mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(run(LAYERS["sum"]), 2 * X)
    np.testing.assert_allclose(run(LAYERS["norm"]).mean((0, 1, 2)), 0, atol=1e-5)
    kept = run(LAYERS["dropout"])
    assert 0.4 < np.mean(kept != 0) < 0.6
    np.testing.assert_allclose(kept[kept != 0], 2 * X[kept != 0])
    with pytest.raises(ValueError, match="give its apply_fun a key, apply_fun"):
        LAYERS["dropout"][1]((), X)


def test_batch_norm_over_axes_counted_from_the_end():
    init, apply = stax.BatchNorm(axis=(0, 1, -2))
    shape, params = init(random.key(0), X.shape)
    expected_init, expected_apply = stax.BatchNorm(axis=(0, 1, 2))
    _, expected = expected_init(random.key(0), X.shape)
    assert shape == X.shape and [p.shape for p in params] == [p.shape for p in expected] == [(3,), (3,)]
    np.testing.assert_array_equal(apply(params, X), expected_apply(expected, X))
