"""Every record, compiled by XLA, against the NumPy rules."""

import pytest

import bedrax.xla_backend  # noqa: F401  (installs XLA as the executor)
from bedrax.testing import checks
from bedrax.testing.records import case_params
from bedrax.xla_backend.tables import lowering_rules


@pytest.mark.parametrize("case", case_params())
def test_xla_equals_numpy(case):
    if case.xla is not True:
        pytest.skip(f"XLA does not run it: {case.xla}")
    checks.check_xla(case)


def test_column_is_complete():
    checks.check_complete(lowering_rules)
