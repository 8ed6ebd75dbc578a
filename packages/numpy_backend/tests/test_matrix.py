"""Every record, evaluated by NumPy: types, and values against oracles that do not use Bedrax."""

import pytest

from bedrax.numpy_backend.tables import numpy_rules
from bedrax.testing import checks
from bedrax.testing.records import all_cases, all_primitives, case_params, unsampled


@pytest.mark.parametrize("case", case_params())
def test_numpy_evaluation(case):
    checks.check_evaluation(case)


@pytest.mark.parametrize("case", case_params())
def test_types(case):
    checks.check_types(case)


def test_every_primitive_has_a_record():
    sampled = {case.primitive for case in all_cases()} | set(unsampled())
    missing = [f"{prim.family}.{prim}" for prim in all_primitives() if prim not in sampled]
    assert not missing, f"no record for {missing}"


def test_record_names_are_unique():
    names = [case.id for case in all_cases()]
    assert len(set(names)) == len(names), sorted(n for n in set(names) if names.count(n) > 1)


def test_column_is_complete():
    checks.check_complete(numpy_rules)
