"""Every decomposition of a primitive with a NumPy rule: both give the same results, for all records."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.lax.tables import decompositions
from bedrax.numpy_backend.composed import by_program
from bedrax.numpy_backend.tables import numpy_rules
from bedrax.testing import checks
from bedrax.testing.records import all_cases, case_params

# Families that have both decompositions and rules of the NumPy column.
FAMILIES = ("linalg", "cumulative", "random_bits", "contractions", "elementwise")
# Records whose parameters a decomposition refuses.
REFUSED = {"linalg-svd-qr_algorithm": "QR is not available"}

CASES = [c for c in all_cases() if c.primitive.family in FAMILIES and c.primitive in decompositions]


@pytest.mark.parametrize("case", case_params(CASES))
def test_decomposition_equals_rule(case, monkeypatch):
    with checks.x64_if_needed(case):
        args = case.make_args()
        expected = checks.numpy_results(case, args)
        composed = by_program(case.primitive, decompositions[case.primitive])
        assert numpy_rules[case.primitive] is not composed
        monkeypatch.setitem(numpy_rules, case.primitive, composed)
        if case.id in REFUSED:
            with pytest.raises(NotImplementedError, match=REFUSED[case.id]):
                checks.numpy_results(case, args)
            return
        for out, want in zip(checks.numpy_results(case, args), expected, strict=True):
            rtol = max(case.rtol or 0, 100 * checks.tolerance(want.dtype))
            checks.assert_same(out, want, rtol, case.atol, case.equal_nan, what=case.id)


def test_refusals_are_records():
    assert REFUSED.keys() <= {c.id for c in CASES}


def test_equal_parameters_of_different_types_or_bits_have_separate_programs():
    def decomposition(x, *, c):
        return lax.div(x, lax.full_like(x, c)) if type(c) is float else lax.full_like(x, 5 if c is True else 7)

    rule = by_program(lax.neg_p, decomposition)
    x = np.ones(1, np.float32)
    for _ in range(2):
        assert [rule(x, c=c).item() for c in (0.0, -0.0, 1.0, 1, True)] == [np.inf, -np.inf, 1, 7, 5]
