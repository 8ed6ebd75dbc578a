"""A sample of the zoo is measured; the page has a line for each model."""

from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("flax") is None:
    pytest.skip("the example needs flax", allow_module_level=True)

from tests.zoo.measure import measure
from tests.zoo.models import ZOO

BY_NAME = {record.name: record for record in ZOO}


@pytest.mark.parametrize("name", ["MLP", "graph net"])
def test_graphs_agree(name):
    result = measure(BY_NAME[name], lite=False)
    assert result.plain < 1e-5
    assert result.native < 1e-5


def test_tflite_programs_have_the_operations_of_handwritten_models():
    result = measure(BY_NAME["CNN with batch norm"])
    assert result.mobile == "2 CONV_2D, 1 FULLY_CONNECTED, 2 MAX_POOL_2D, 1 RESHAPE"
    assert result.mobile_error < 1e-5 and result.quantized_error < 0.05


def test_tflite_draws_with_the_keys_inside():
    result = measure(BY_NAME["VAE, keys inside"])
    assert result.mobile.startswith("known sizes: ") and "Flex" not in result.mobile
    assert result.mobile_error < 1e-5


def test_operations_that_tflite_lacks_are_named():
    result = measure(BY_NAME["FFT model"])
    assert result.mobile.startswith("no: IRFFT") and result.mobile_error is None


def test_the_page_has_every_model():
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == list(BY_NAME)
