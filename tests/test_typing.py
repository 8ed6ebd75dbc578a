"""The values of `tests/typing/interface.py` have the types of its annotations; mypy checks the annotations."""

import runpy
from pathlib import Path

import numpy as np
import pytest


def test_the_annotated_program_runs_and_its_values_have_the_types_it_claims():
    results = runpy.run_path(str(Path(__file__).parent / "typing" / "interface.py"))["main"]()
    assert results["shape"] == results["described"].shape == results["host"].shape == (5, 2)
    assert isinstance(results["dtype"], np.dtype)
    assert results["dtype"] == results["described"].dtype == np.float32
    assert np.abs(results["host"]).min() > 0
    assert results["number"] == pytest.approx(results["host"].sum(dtype=np.float64), rel=1e-5)
