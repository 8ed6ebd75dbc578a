"""Every record, differentiated: against finite differences, and transposes against forward mode."""

import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.autodiff.linearization import split_rules
from bedrax.autodiff.tables import jvp_rules, linear, linearize_rules, transpose_rules
from bedrax.core import dtypes
from bedrax.core.tracing import Primitive
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


@pytest.mark.parametrize("column", [jvp_rules, transpose_rules, linearize_rules, split_rules], ids=lambda c: c.name)
def test_columns_are_complete(column):
    # A primitive without a derivative has no linearization. The jvp column states the reason.
    checks.check_complete(column, jvp_rules.absences if column is linearize_rules else None)


def test_a_rule_that_a_library_replaces_is_used_in_reverse_mode_too():
    prim = Primitive("doubled")
    prim.abstract_eval = lambda aval: aval
    prim.def_impl(lambda x: lax.mul(x, 2.0))
    linear(prim, lambda ct, x: [prim.bind(ct)])
    assert float(grad(prim.bind)(1.0)) == 2
    jvp_rules.replace(prim, lambda primals, tangents: (primals[0], lax.mul(tangents[0], 5.0)))
    assert float(grad(prim.bind)(1.0)) == 5
