"""Functions with derivatives by their own formulas: ``log(exp(x) + exp(y))`` and ``sin(x) / x``.

Differentiation of their computation would give wrong or undefined values where the method changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.lax.operators import _select
from bedrax.lax.primitives import elementwise as ops

_log_add_exp_rule: Callable[..., Any] | None = None


def log_add_exp() -> Callable[..., Any]:
    """The function with its derivative ``exp(x - out) dx + exp(y - out) dy``, which is correct for derivatives of any order."""
    global _log_add_exp_rule
    if _log_add_exp_rule is not None:
        return _log_add_exp_rule
    from bedrax.autodiff import custom_jvp

    def value(x, y):
        if dtypes.is_complex(aval_of(x).dtype):
            swap = lax.lt(lax.real(x), lax.real(y))
            high, low = _select(swap, y, x), _select(swap, x, y)
            return lax.add(high, lax.log1p(lax.exp(lax.sub(low, high))))
        zero = ops.scalar_like(x, 0.0)
        gap = _select(lax.eq(x, y), zero, lax.sub(x, y))  # inf - inf is nan
        return lax.add(lax.max(x, y), lax.log1p(lax.exp(lax.neg(lax.abs(gap)))))

    rule = custom_jvp(value)

    @rule.defjvp
    def _derivative(primals, tangents):
        x, y = primals
        dx, dy = tangents
        out = rule(x, y)
        zero = ops.scalar_like(out, 0.0)

        def share(x):
            equal = lax.eq(x, out)  # covers infinities of one sign
            return lax.exp(_select(equal, zero, lax.sub(x, out)))

        return out, lax.add(lax.mul(dx, share(x)), lax.mul(dy, share(y)))

    _log_add_exp_rule = rule
    return rule


def _sinc_series(n: int) -> list[float]:
    """Taylor coefficients in ``(pi x)**2`` of the n-th derivative of ``sin(t)/t`` over t or 1, by parity."""
    out = []
    for k in range(8):
        # d^n/dt^n of t^(2m) / (2m+1)! (-1)^m, the term that ends at power 2k (+1 for odd n).
        power = 2 * k + n % 2
        m2 = power + n
        coefficient = (-1) ** (m2 // 2) / math.factorial(m2 + 1) * math.factorial(m2) / math.factorial(power)
        out.append(coefficient)
    return out


_sinc_derivative: Callable[..., Any] | None = None


def sinc() -> Callable[..., Any]:
    global _sinc_derivative
    if _sinc_derivative is not None:
        return _sinc_derivative
    from bedrax.autodiff import custom_jvp

    def nth(n: int, t):
        """The n-th derivative of sin(t)/t: by the recurrence where t is large, by its series where it is small."""
        zero, one = ops.scalar_like(t, 0.0), ops.scalar_like(t, 1.0)
        size = lax.abs(t)
        small = lax.lt(size, ops.scalar_like(size, 0.5 + 0.5 * n))
        safe = _select(small, one, t)
        value = lax.div(lax.sin(safe), safe)
        for k in range(1, n + 1):  # t f^(k) + k f^(k-1) = sin^(k)(t) = sin(t + k pi/2)
            s = (lax.sin, lax.cos, lambda v: lax.neg(lax.sin(v)), lambda v: lax.neg(lax.cos(v)))[k % 4](safe)
            value = lax.div(lax.sub(s, lax.mul(ops.scalar_like(t, float(k)), value)), safe)
        inner = _select(small, t, zero)
        square = lax.mul(inner, inner)
        series = ops.scalar_like(t, 0.0)
        for c in reversed(_sinc_series(n)):
            series = lax.add(lax.mul(series, square), ops.scalar_like(t, c))
        if n % 2:
            series = lax.mul(series, inner)
        return _select(small, series, value)

    rules: dict[int, Callable[..., Any]] = {}

    def rule(n: int) -> Callable:
        if n not in rules:
            made = custom_jvp(lambda t: nth(n, t))
            made.defjvp(lambda primals, tangents: (made(*primals), lax.mul(tangents[0], rule(n + 1)(*primals))))
            rules[n] = made
        return rules[n]

    _sinc_derivative = lambda x: rule(0)(lax.mul(x, ops.scalar_like(x, math.pi)))
    return _sinc_derivative
