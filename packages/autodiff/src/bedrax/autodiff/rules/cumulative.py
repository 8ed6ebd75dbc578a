"""Derivatives of the cumulative reductions: each tangent is a linear recurrence along the axis.

With y the result, t the tangent of the operand x, and k a position:

    cumprod        y'[k] = x[k] y'[k-1] + y[k-1] t[k]                            (no division: zeros are not an exception)
    cummax, cummin y'[k] = s[k] / c[k],  s[k] = u[k] s[k-1] + v[k] t[k],  c[k] = u[k] c[k-1] + v[k]
                   u[k] = (y[k] == y[k-1]), v[k] = (y[k] == x[k]): elements that tie share the tangent
    cumlogsumexp   y'[k] = exp(y[k-1] - y[k]) y'[k-1] + exp(x[k] - y[k]) t[k]    (both factors at most 1)

The tangent of a linear recurrence is one again, and so is its transpose, in the other direction.
"""

from bedrax.autodiff.tables import jvp, linear
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.lax.filling import zeros_like
from bedrax.lax.primitives import cumulative as p
from bedrax.lax.primitives.conversions import convert_element_type
from bedrax.lax.primitives.elementwise import div, eq, exp, mul, select, sub


def _cumprod(t, y, x, *, axis, reverse):
    return p.linear_recurrence(x, mul(t, p.shifted(y, 1, axis, reverse)), axis, reverse)


def _extreme(t, y, x, *, axis, reverse):
    dtype = aval_of(x).dtype
    keep = convert_element_type(eq(y, p.shifted(y, 0, axis, reverse)), dtype)  # the first one has nothing to keep
    attained = convert_element_type(eq(x, y), dtype)
    count = p.linear_recurrence(keep, attained, axis, reverse)
    return div(p.linear_recurrence(keep, mul(t, attained), axis, reverse), count)


def _cumlogsumexp(t, y, x, *, axis, reverse):
    dtype = aval_of(x).dtype
    low = p.identity(p.cumlogsumexp_p, dtype)
    # Where all elements so far are -inf, so are the numerators: any finite denominator gives 0.
    finite = select(eq(y, low), zeros_like(y), y)
    keep = exp(sub(p.shifted(y, dtypes.finfo(dtype).min, axis, reverse), finite))
    return p.linear_recurrence(keep, mul(t, exp(sub(x, finite))), axis, reverse)


def _recurrence_by_factor(t, y, a, b, *, axis, reverse):
    return p.linear_recurrence(a, mul(t, p.shifted(y, 0, axis, reverse)), axis, reverse)


def _recurrence_transpose(ct, a, b, *, axis, reverse):
    """``l[k] = ct[k] + a[k+1] l[k+1]``."""
    return [None, p.linear_recurrence(p.shifted(a, 0, axis, not reverse), ct, axis, not reverse)]


jvp(
    p.linear_recurrence_p,
    _recurrence_by_factor,
    lambda t, y, a, b, *, axis, reverse: p.linear_recurrence(a, t, axis, reverse),
    transpose=_recurrence_transpose,
)
linear(p.cumsum_p, lambda ct, x, *, axis, reverse: [p.cumsum(ct, axis, not reverse)])
jvp(p.cumprod_p, _cumprod)
jvp(p.cummax_p, _extreme)
jvp(p.cummin_p, _extreme)
jvp(p.cumlogsumexp_p, _cumlogsumexp)
