"""Bounds of the value of a dimension, and comparisons that follow from them.

The lower bound of an expression is the best result of three kinds of steps, a few steps deep:
intervals (variables are at least 1, or satisfy constraints), additions of multiples of constraints that cancel a
term, and the two cases of a maximum or minimum, from the innermost one outward. All of it is sound; it is not complete.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from bedrax.core.codes import coded
from bedrax.core.errors import InconclusiveDimensionOperation
from bedrax.shape_poly.terms import Operation, add_to, multiply_terms, terms_of

INFINITY = math.inf
_DEPTH = 3
_SPLITS = 4  # of maxima and minima into their two cases, one inside the other
_EXTREMES = ("max", "min")


def bounds(x: Any) -> tuple[float, float]:
    """Lower and upper bound: integers, or infinite floats."""
    if type(x) is int:
        return x, x
    found = x.scope.known_bounds.get(x.terms)
    return _bounds_now(x) if found is None else found


class _Search(threading.local):
    """The bounds that this thread computes. Incomplete bounds stay in the thread until they are complete.

    Attributes:
      active: for each expression whose bounds are computed now, the number of such expressions before it.
      provisional: bounds that depend on an expression in `active`, so they may be too wide.
      outermost: the smallest number in `active` of an expression that was used again; infinity if there is none.
    """

    def __init__(self) -> None:
        self.active: dict[tuple[Any, ...], int] = {}
        self.provisional: dict[tuple[Any, ...], tuple[float, float]] = {}
        self.outermost: float = INFINITY


_search = _Search()


def _bounds_now(x: Any) -> tuple[float, float]:
    """The bounds of an expression that its scope does not have yet. The scope stores them if they are complete."""
    search, key = _search, (id(x.scope), x.terms)
    if key in search.active:
        search.outermost = min(search.outermost, search.active[key])
        return -INFINITY, INFINITY
    if key in search.provisional:
        search.outermost = 0
        return search.provisional[key]
    number = search.active[key] = len(search.active)
    before, search.outermost = search.outermost, INFINITY
    try:
        low = _lower(x.scope, dict(x.terms), _DEPTH)
        high = -_lower(x.scope, {m: -c for m, c in x.terms}, _DEPTH)
    except BaseException:
        search.provisional.clear()
        raise
    finally:
        del search.active[key]
        finished = search.outermost >= number
        search.outermost = before if finished else min(before, search.outermost)
        if not search.active:
            search.provisional.clear()
    if finished:
        x.scope.known_bounds[x.terms] = low, high
    else:
        search.provisional[key] = low, high
    return low, high


def decide(x: Any, symbol: str, y: Any) -> bool:
    """The result of `x >= y` (and so on) if it is the same for all values.

    Raises:
      InconclusiveDimensionOperation: the result differs, or is unknown.
    """
    low, high = bounds(x - y)
    if symbol == ">=" and (low >= 0 or high < 0):
        return low >= 0
    if symbol == ">" and (low > 0 or high <= 0):
        return low > 0
    if symbol == "<=" and (high <= 0 or low > 0):
        return high <= 0
    if symbol == "<" and (high < 0 or low >= 0):
        return high < 0
    text = (
        f"Symbolic dimension comparison '{x}' {symbol} '{y}' is inconclusive.\n"
        f"(Dimension polynomial comparison '{x}' {symbol} '{y}' is inconclusive: it holds for some values of the"
        " variables and fails for others, or could not be decided.) Use max_dim and min_dim instead of conditions,"
        f" or give constraints, such as '{x} {symbol} {y}', when the dimensions are made."
    )
    raise InconclusiveDimensionOperation(coded("BX-DIM-VALUE", text))


def _lower(scope, sums: dict, depth: int, splits: int = _SPLITS, assumed: tuple = ()) -> float:
    """A lower bound of a sum of terms; `assumed` are sums that are not negative in the current case."""
    best = _interval_lower(scope, sums)
    if depth == 0 or not any(sums):
        return best
    atom = _innermost_extreme(sums) if splits else None
    if atom is not None:
        low = INFINITY
        for taken, other in ((atom.x, atom.y), (atom.y, atom.x)):
            case = dict(terms_of(taken - other if atom.kind == "max" else other - taken))
            if _interval_lower(scope, add_to({}, case.items(), -1)) > 0:
                continue  # this case does not occur
            try:
                known = (*[replace(a, atom, taken) for a in assumed], case)
                one = replace(sums, atom, taken)
            except ZeroDivisionError:  # the sum has no value in this case
                return best
            low = min(low, _lower(scope, one, depth, splits - 1, known))
            if low <= best:
                break
        return max(best, low)
    for constraint in (*scope.constraints, *assumed, *_facts(sums)):
        for m, c in constraint.items():
            given = sums.get(m, 0)
            if m and given * c > 0:  # e = (|c| e - |given| constraint) / |c| + ..., where the last is not negative
                g = math.gcd(given, c)
                scale, amount = abs(c) // g, abs(given) // g
                rest = add_to({k: v * scale for k, v in sums.items()}, constraint.items(), -amount)
                low = _lower(scope, rest, depth - 1, splits, assumed)
                if low > -INFINITY:
                    best = max(best, -((-low) // scale))
    return best


def _innermost_extreme(sums: dict) -> Operation | None:
    """A maximum or minimum in a sum, or inside of its atoms, whose arguments have none. None: there is none."""
    for m in sums:
        for atom, _ in m:
            if type(atom) is Operation:
                for argument in (atom.x, atom.y):
                    found = _innermost_extreme(dict(terms_of(argument)))
                    if found is not None:
                        return found
                if atom.kind in _EXTREMES:
                    return atom
    return None


def replace(sums: dict[Any, int], atom: Operation, value: Any) -> dict[Any, int]:
    """`sums` with an atom replaced by a dimension, also inside of other atoms."""
    out: dict[Any, int] = {}
    for m, c in sums.items():
        term: dict[Any, int] = {(): c}
        for factor, n in m:
            terms = _replaced(factor, atom, value)
            for _ in range(n):
                term = multiply_terms(term.items(), terms)
        add_to(out, term.items())
    return out


def _replaced(factor: Any, atom: Operation, value: Any) -> tuple[Any, ...]:
    """The terms of an atom in which another one is replaced."""
    if factor == atom:
        return terms_of(value)
    if type(factor) is Operation:
        x, y = (d if type(d) is int else d.replaced(atom, value) for d in (factor.x, factor.y))
        if x is not factor.x or y is not factor.y:
            dimension = factor.y if type(factor.x) is int else factor.x
            return terms_of(dimension.operation(factor.kind, x, y))
    return ((((factor, 1),), 1),)


def _facts(sums: dict):
    """Constraints (sums that are not negative) between the divisions in `sums` and their dividends."""
    for m in sums:
        for atom, n in m:
            if type(atom) is Operation and atom.kind == "floordiv" and n == 1 and bounds(atom.y)[0] > 0:
                divided = multiply_terms(terms_of(atom.y), [(((atom, 1),), 1)])
                rest = add_to(dict(terms_of(atom.x)), divided.items(), -1)  # 0 <= x - y * (x // y) <= y - 1
                yield rest
                yield add_to(add_to({(): -1}, terms_of(atom.y)), rest.items(), -1)


def _interval_lower(scope, sums: dict) -> float:
    total: float = 0
    for m, c in sums.items():
        low, high = _monomial_interval(scope, m)
        total += _times(c, low if c > 0 else high)
        if total == -INFINITY:
            break
    return total


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def _product(a: tuple, b: tuple) -> tuple[float, float]:
    corners = [_times(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _monomial_interval(scope, m) -> tuple[float, float]:
    out: tuple[float, float] = (1, 1)
    for atom, n in m:
        interval = _atom_interval(scope, atom)
        power: tuple[float, float] = (1, 1)
        for _ in range(n):
            power = _product(power, interval)
        if n % 2 == 0:
            power = (max(power[0], 0), power[1])
        out = _product(out, power)
    known = scope.monomial_bounds.get(m)
    return out if known is None else (max(out[0], known[0]), min(out[1], known[1]))


def _atom_interval(scope, atom) -> tuple[float, float]:
    if type(atom) is str:
        return scope.monomial_bounds.get(((atom, 1),), (1, INFINITY))
    x, y = bounds(atom.x), bounds(atom.y)
    if atom.kind == "max":
        return max(x[0], y[0]), max(x[1], y[1])
    if atom.kind == "min":
        return min(x[0], y[0]), min(x[1], y[1])
    if y[0] <= 0:  # divisors of unknown or negative sign
        return -INFINITY, INFINITY
    if atom.kind == "mod":
        return 0, y[1] - 1
    corners = [_quotient(n, d) for n in x for d in y]
    return min(corners), max(corners)


def _quotient(n: float, d: float) -> float:
    """Floor division, with infinities; `d` is positive."""
    if d == INFINITY:
        return 0 if n >= 0 else -1 if n > -INFINITY else -INFINITY
    return n // d if abs(n) < INFINITY else n
