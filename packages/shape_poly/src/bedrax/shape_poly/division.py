"""Floor division of symbolic dimensions: what can be divided is, the rest becomes `floordiv` and `mod` atoms."""

from __future__ import annotations

import math
from typing import Any

from bedrax.shape_poly import bounds
from bedrax.shape_poly.expressions import Operation, add_to, content, make, multiply_terms, over, terms_of


def divide(scope, x: Any, y: Any) -> tuple[Any, Any]:
    """`divmod(x, y)`: `x == q * y + r` where `r` has the sign of `y` and is smaller.

    Raises:
      ZeroDivisionError: `y` is 0.
    """
    if type(y) is int:
        if y == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        if y < 0:  # floor(x / y) = floor(-x / -y)
            quotient, rest = divide(scope, -x, -y)
            return quotient, -rest
        return _by_integer(scope, x, y)
    quotient, rest = _long_division(terms_of(x), y.terms)
    if not rest:
        return make(scope, quotient), 0
    q, r = make(scope, quotient), make(scope, rest)
    if quotient and _fits(r, y):
        return q, r
    if _fits(x, y):
        return 0, x
    return _atom(scope, "floordiv", x, y), _atom(scope, "mod", x, y)


def _fits(r, y) -> bool:
    """Whether `0 <= r < y` for all values."""
    return bounds.bounds(r)[0] >= 0 and bounds.bounds(y - r)[0] > 0


def _atom(scope, kind: str, x, y):
    return make(scope, {((Operation(kind, x, y), 1),): 1})


def _by_integer(scope, x, n: int) -> tuple[Any, Any]:
    """Division by a positive integer: multiples of it are divided, common factors cancelled."""
    whole: dict = {}
    part: dict = {}
    for m, c in x.terms:
        if c % n == 0:
            whole[m] = c // n
        elif m:
            part[m] = c
        else:
            whole[m], part[m] = divmod(c, n)
            if not whole[m]:
                del whole[m]
    constant = part.pop((), 0)
    if not part:
        return make(scope, whole), constant
    # floor((g x + c) / (g m)) = floor((x + floor(c / g)) / m), and the remainder is g (...) + c mod g
    g = math.gcd(content(part.items()), n)
    shift, low = divmod(constant, g)
    reduced = {m: c // g for m, c in part.items()}
    if shift:
        reduced[()] = shift
    inner, divisor = make(scope, reduced), n // g
    if type(inner) is int:
        q, r = divmod(inner, divisor)
    elif divisor == 1:
        q, r = inner, 0
    elif _fits(inner, divisor):
        q, r = 0, inner
    elif inner.terms[0][1] < 0:  # one form for ceil(x / n), too: floor(-x / n) = -floor((x + n - 1) / n)
        q, r = divmod(-inner + (divisor - 1), divisor)
        q, r = -q, divisor - 1 - r
    else:
        q, r = _atom(scope, "floordiv", inner, divisor), _atom(scope, "mod", inner, divisor)
    return make(scope, whole) + q, r * g + low


def _long_division(x: tuple, y: tuple) -> tuple[dict, dict]:
    """Polynomial division by the leading term of `y`; stops where that does not divide."""
    from bedrax.shape_poly.expressions import _monomial_key

    rest, quotient = dict(x), {}
    lead, coefficient = y[0]
    while rest:
        m = max(rest, key=_monomial_key)
        power = over(m, lead)
        if power is None or rest[m] % coefficient:
            break
        term = {power: rest[m] // coefficient}
        add_to(quotient, term.items())
        add_to(rest, multiply_terms(term.items(), y).items(), -1)
    return quotient, rest
