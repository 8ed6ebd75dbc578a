"""Every record, differentiated: against finite differences, and transposes against forward mode."""

import pytest

from bedrax.autodiff.tables import jvp_rules
from bedrax.core import dtypes
from bedrax.testing import checks
from bedrax.testing.records import all_cases, case_params


def _differentiable(case):
    return case.grad != () and any(dtypes.is_inexact(a.dtype) for a in case.make_args())


CASES = [case for case in all_cases() if _differentiable(case)]


@pytest.mark.parametrize("case", case_params(CASES))
def test_forward(case):
    checks.check_jvp(case)


@pytest.mark.parametrize("case", case_params(CASES))
def test_reverse(case):
    checks.check_vjp(case)


@pytest.mark.parametrize("case", case_params(CASES))
def test_second(case):
    checks.check_second_derivative(case)


@pytest.mark.parametrize("case", case_params(CASES))
def test_types(case):
    checks.check_derivative_types(case)


def test_column_is_complete():
    checks.check_complete(jvp_rules)
