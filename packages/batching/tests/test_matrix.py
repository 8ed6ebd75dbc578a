"""Every record, mapped: `vmap` equals a loop."""

import pytest

from bedrax.batching.tables import batch_rules
from bedrax.testing import checks
from bedrax.testing.records import case_params


@pytest.mark.parametrize("case", case_params())
def test_batching(case):
    checks.check_batching(case)


@pytest.mark.parametrize("case", case_params())
def test_types(case):
    checks.check_batched_types(case)


def test_column_is_complete():
    checks.check_complete(batch_rules)
