"""`vmap` of every record equals a loop."""

import pytest

from bedrax.batching.tables import batch_rules
from bedrax.batching.trace import axis_rules
from bedrax.core.tables import named_axes
from bedrax.testing import checks
from bedrax.testing.records import all_primitives, case_params


@pytest.mark.parametrize("case", case_params())
def test_batching(case):
    checks.check_batching(case)


@pytest.mark.parametrize("case", case_params())
def test_types(case):
    checks.check_batched_types(case)


def test_column_is_complete():
    checks.check_complete(batch_rules)


def test_each_collective_has_a_rule_for_its_own_axis():
    collectives = [prim for prim in all_primitives() if prim in named_axes.kinds]
    assert len(collectives) > 5
    for prim in collectives:
        assert axis_rules.kind(prim) is not None, prim
