"""The files for the browser, without a browser: `nox -s web` runs the page."""

from importlib.util import find_spec

import pytest

for module in "flax", "sklearn", "optax":
    if find_spec(module) is None:
        pytest.skip(f"the example needs {module}", allow_module_level=True)

import jax
import numpy as np

from examples.digits import data, linen_model, training
from examples.digits.web import export
from examples.tfjs import unpacked

# The operations of our graphs that the converter of TF.js 4.22 supports.
KNOWN = {
    "AddV2",
    "BiasAdd",
    "Const",
    "Conv2D",
    "FusedBatchNormV3",
    "Identity",
    "IdentityN",
    "MatMul",
    "MaxPool",
    "Mul",
    "Placeholder",
    "Relu",
    "Reshape",
    "Rsqrt",
    "Shape",
    "Softmax",
    "StridedSlice",
    "Sub",
}


@pytest.fixture(scope="module")
def network():
    return linen_model.init(jax.random.key(0))


@pytest.fixture(scope="module")
def digits():
    return data.load()


def test_two_graphs_are_the_network(network, digits):
    params, stats = network
    modules = export.modules(params, stats)
    images = digits.test_images[:9]
    known = modules["features"].call(images)
    found = modules["head"].call(known, *export.head_params(params).values())
    expected = training.predict(linen_model.MODEL, params, stats, images)
    np.testing.assert_allclose(found["probs"], expected, atol=1e-6)
    for module in modules.values():
        concrete = module.call.get_concrete_function()
        assert {op.type for op in concrete.graph.get_operations()} <= KNOWN


def test_exported_results_have_the_expected_values(network, digits):
    params, stats = network
    found = export.expected(digits, params, stats)
    probs = unpacked(found["probs"])
    assert probs.shape == (360, 10)
    np.testing.assert_allclose(probs.sum(-1), 1, rtol=1e-5)
    # The gradient by the last bias is the mean of (result - target), with the next digit as the target.
    n = found["batch"]
    wanted = np.eye(10)[(digits.test_labels[:n] + 1) % 10]
    gradient = unpacked(found["gradients"]["bias"])
    np.testing.assert_allclose(gradient, (probs[:n] - wanted).mean(0), atol=1e-6)


def test_rehearsed_digits_are_of_all_classes(network, digits):
    found = export.page_data(digits, network[0])
    labels = unpacked(found["rehearsed_labels"])
    assert np.bincount(labels).tolist() == [export.REHEARSED] * 10
