"""The terms of symbolic dimensions: monomials, sums of them as dictionaries, and their order.

A sum is a dictionary monomial -> coefficient that is not 0. A monomial is a tuple of pairs (atom, exponent),
ascending; () is the constant one. An atom is the name of a variable, or an `Operation`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

Monomial: TypeAlias = tuple[Any, ...]


class Operation(NamedTuple):
    """An atom: `floordiv(x, y)`, `mod(x, y)`, `max(x, y)` or `min(x, y)`."""

    kind: str
    x: Any
    y: Any

    def __str__(self) -> str:
        return f"{self.kind}({_argument(self.x)}, {_argument(self.y)})"


def _argument(x) -> str:
    return f"- {-x}" if type(x) is int and x < 0 else str(x)


def _atom_key(atom) -> tuple:
    return (0, atom) if type(atom) is str else (1, str(atom))


def monomial_key(m: Monomial) -> tuple[Any, ...]:
    """Monomials are ordered by degree, then by their factors."""
    if not m:
        return (0, ())
    return (sum(n for _, n in m), tuple([_atom_key(a) for a, n in m for _ in range(n)]))


def times(m1: Monomial, m2: Monomial) -> Monomial:
    """Product of monomials."""
    if not m1 or not m2:
        return m1 or m2
    powers = dict(m1)
    for atom, n in m2:
        powers[atom] = powers.get(atom, 0) + n
    return tuple(sorted(powers.items(), key=lambda f: _atom_key(f[0])))


def over(m1: Monomial, m2: Monomial) -> Monomial | None:
    """Quotient of monomials; None if it is not a monomial."""
    powers = dict(m1)
    for atom, n in m2:
        left = powers.get(atom, 0) - n
        if left < 0:
            return None
        if left:
            powers[atom] = left
        else:
            del powers[atom]
    return tuple(powers.items())


def add_to(sums: dict[Monomial, int], terms: Iterable[tuple[Monomial, int]], factor: int = 1) -> dict[Monomial, int]:
    """Add `factor` times the terms to `sums` (in place)."""
    for m, c in terms:
        total = sums.get(m, 0) + c * factor
        if total:
            sums[m] = total
        else:
            sums.pop(m, None)
    return sums


def terms_of(x: Any) -> tuple[Any, ...]:
    """Terms of a dimension or of an integer."""
    if type(x) is int:
        return (((), x),) if x else ()
    return x.terms


def multiply_terms(x: Iterable[Any], y: Iterable[Any]) -> dict[Monomial, int]:
    y = tuple(y)
    out: dict[Monomial, int] = {}
    for m1, c1 in x:
        add_to(out, [(times(m1, m2), c2) for m2, c2 in y], c1)
    return out


def content(terms: Iterable[tuple[Monomial, int]]) -> int:
    """Greatest common divisor of the coefficients of the non-constant terms."""
    return math.gcd(*[c for m, c in terms if m])


def text_of(terms: tuple[Any, ...]) -> str:
    parts = []
    for m, c in terms:
        size = abs(c)
        factors = [str(size)] if size != 1 or not m else []
        factors += [str(a) if n == 1 else f"{a}^{n}" for a, n in m]
        sign = "- " if c < 0 else "+ "
        parts.append(sign + "*".join(factors))
    return " ".join(parts).removeprefix("+ ")
