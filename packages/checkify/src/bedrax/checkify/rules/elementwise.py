"""Checks of elementwise operations: divisions, and operations that only select or copy."""

from bedrax import lax
from bedrax.checkify.errors import DivisionByZeroError
from bedrax.checkify.trace import any_of, applied, check_rules, nan_checked
from bedrax.core.avals import aval_of
from bedrax.lax.primitives.elementwise import conj_p, copy_p, div_p, imag_p, neg_p, real_p, select_n_p

for _prim in (conj_p, copy_p, imag_p, neg_p, real_p, select_n_p):
    check_rules.add(_prim, applied(_prim), "applied")

_divide = nan_checked(div_p)


@check_rules.rule(div_p)
def _div(trace, x, y):
    if DivisionByZeroError in trace.kinds:
        trace.fail(DivisionByZeroError, any_of(lax.eq(y, aval_of(y).dtype.type(0))), "division by zero")
    return _divide(trace, x, y)
