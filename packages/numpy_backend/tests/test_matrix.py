"""Every record, evaluated by NumPy: values against oracles that do not use Bedrax, types against the shape rules."""

import os

import pytest

from bedrax.numpy_backend.tables import numpy_rules
from bedrax.testing import checks
from bedrax.testing.records import case_params


@pytest.mark.parametrize("case", case_params())
def test_numpy_evaluation(case):
    checks.check_evaluation(case)


@pytest.mark.parametrize("case", case_params())
def test_comparisons_do_not_depend_on_rounding(case):
    """`nox -s conditioned` draws more often."""
    checks.check_conditioned(case, int(os.environ.get("BEDRAX_DRAWS", "3")))


def test_column_is_complete():
    checks.check_complete(numpy_rules)
