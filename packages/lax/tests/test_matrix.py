"""Every record as a program: types, without anything that evaluates."""

import pytest

from bedrax.core.tables import shape_rules
from bedrax.testing.records import all_cases, all_primitives, case_params, unsampled
from bedrax.testing.typing import check_complete, check_types


@pytest.mark.parametrize("case", case_params())
def test_types(case):
    check_types(case)


def test_every_primitive_has_a_record():
    sampled = {case.primitive for case in all_cases()} | set(unsampled())
    missing = [f"{prim.family}.{prim}" for prim in all_primitives() if prim not in sampled]
    assert not missing, f"no record for {missing}"


def test_record_names_are_unique():
    names = [case.id for case in all_cases()]
    assert len(set(names)) == len(names), sorted(n for n in set(names) if names.count(n) > 1)


def test_every_primitive_has_a_shape_rule():
    check_complete(shape_rules)
