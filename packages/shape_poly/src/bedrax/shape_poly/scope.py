"""Scopes: dimension variables that belong together, and the constraints on them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bedrax.core import source
from bedrax.core.codes import coded
from bedrax.shape_poly.bounds import bounds
from bedrax.shape_poly.parsing import parse_dimension
from bedrax.shape_poly.terms import Monomial, add_to, multiply_terms, over, terms_of

if TYPE_CHECKING:
    from bedrax.shape_poly.expressions import SymbolicDim


_RELATION = re.compile(r"==|>=|<=")


class SymbolicScope:
    """The variables that may be combined with each other, and the constraints on them.

    Args:
      constraints_str: strings ``"e1 >= e2"``, ``"e1 <= e2"`` or ``"e1 == e2"``. An equality is a rule that replaces the
        left side, which must be a product, by the right side.

    Raises:
      ValueError: a constraint has another form, or cannot be satisfied.

    Examples:

      >>> from jax import export

      >>> scope = export.SymbolicScope(["n >= 2"])
      >>> (n,) = export.symbolic_shape("n", scope=scope)
      >>> bool(n >= 1)
      True
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str) or not all(isinstance(c, str) for c in constraints_str):
            raise ValueError(f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}")
        self.constraints_str: tuple[str, ...] = tuple(constraints_str)
        self.constraints: list[dict[Monomial, int]] = []  # sums that are not negative
        self.rules: list[tuple[Monomial, int, Any]] = []  # coefficient * monomial -> dimension
        self.multiples: list[tuple[Monomial, int, Any]] = []  # monomial, divisor, and quotient
        self.monomial_bounds: dict[Monomial, tuple[float, float]] = {}
        self.known_bounds: dict[tuple[Any, ...], tuple[float, float]] = {}
        self.checks: list[tuple[str, Any, str, Any]] = []  # text, left, relation, right: before any rule
        self.place: Any = source.user_frame()
        for text in self.constraints_str:
            self._add(text)

    def _add(self, text: str) -> None:
        found = _RELATION.search(text)
        if found is None:
            raise ValueError(f"Constraint parsing error: '{text}' must contain one of '==' or '>=' or '<='")
        relation = found.group()
        sides = (text[: found.start()], text[found.end() :])
        rules, self.rules = self.rules, []
        bare = [parse_dimension(side, self) for side in sides]
        self.rules = rules
        left, right = (parse_dimension(side, self) for side in sides)
        self.checks.append((text, *((bare[0], relation, bare[1]))))
        low, high = bounds(left - right)
        if high < 0 and relation != "<=" or low > 0 and relation != ">=":
            raise ValueError(f"Unsatisfiable constraint: {text}")
        difference = add_to(dict(terms_of(left)), terms_of(right), -1)
        if relation in (">=", "=="):
            self._assume(difference)
        if relation in ("<=", "=="):
            self._assume({m: -c for m, c in difference.items()})
        if relation == "==" and difference:
            terms = terms_of(left)
            if len(terms) != 1 or not terms[0][0]:
                raise ValueError(
                    f"Invalid equality constraint: {text}. The left side must be a product, such as 'a', '4*a' or"
                    " 'floordiv(a, b)', because occurrences of it are replaced by the right side"
                )
            self.rules.append((*terms[0], right))
            self._divide(*terms[0], right)
        self.known_bounds.clear()

    def _divide(self, monomial: Monomial, coefficient: int, right: Any) -> None:
        """Use ``mod(x, n) == 0``: multiples of `x` can be divided by n, with ``n * floordiv(x, n) == x``."""
        atom = monomial[0][0]
        if coefficient != 1 or len(monomial) > 1 or monomial[0][1] != 1 or type(atom) is str or atom.kind != "mod":
            return
        terms = terms_of(atom.x)
        if right != 0 or type(atom.y) is not int or len(terms) != 1 or terms[0][1] != 1:
            return
        quotient = atom.x // atom.y
        self.multiples.append((terms[0][0], atom.y, quotient))
        self.rules.append((quotient.terms[0][0], atom.y, atom.x))
        self._assume(add_to(dict(terms), [((), atom.y)], -1))  # a multiple that is at least 1

    def divided(self, monomial: Monomial, coefficient: int, n: int) -> Any:
        """The terms of ``coefficient * monomial / n`` if that is known to be an integer, else None."""
        for known, divisor, quotient in self.multiples:
            rest = over(monomial, known)
            if rest is not None and coefficient * divisor % n == 0:
                return multiply_terms([(rest, coefficient * divisor // n)], terms_of(quotient)).items()
        return None

    def _assume(self, sums: dict[Monomial, int]) -> None:
        """Assume that a sum is not negative."""
        if not sums:
            return
        self.constraints.append(sums)
        symbolic = [(m, c) for m, c in sums.items() if m]
        if len(symbolic) == 1:  # c * m + constant >= 0
            (m, c), constant = symbolic[0], sums.get((), 0)
            variable = len(m) == 1 and m[0][1] == 1 and type(m[0][0]) is str
            low, high = self.monomial_bounds.get(m, (1 if variable else -float("inf"), float("inf")))
            if c > 0:
                low = max(low, -(constant // c))
            else:
                high = min(high, constant // -c)
            self.monomial_bounds[m] = (low, high)
            self._assume_dividend(m, low, high)

    def _assume_dividend(self, monomial: Monomial, low: float, high: float) -> None:
        """Derive bounds of x from bounds of ``floordiv(x, n)``."""
        atom = monomial[0][0]
        if len(monomial) > 1 or monomial[0][1] != 1 or type(atom) is str or atom.kind != "floordiv":
            return
        if type(atom.y) is int and abs(low) < float("inf"):
            self._assume(add_to(dict(terms_of(atom.x)), [((), low * atom.y)], -1))
        if type(atom.y) is int and abs(high) < float("inf"):
            self._assume(add_to({(): high * atom.y + atom.y - 1}, terms_of(atom.x), -1))

    def rewrite(self, sums: Mapping[Monomial, int]) -> Mapping[Monomial, int]:
        """Apply the equalities until none applies (at most a fixed number of times, in case of cycles)."""
        for _ in range(16):
            for monomial, coefficient, replacement in self.rules:
                hit = next(
                    ((m, c) for m, c in sums.items() if c % coefficient == 0 and over(m, monomial) is not None), None
                )
                if hit is not None:
                    m, c = hit
                    sums = {k: v for k, v in sums.items() if k != m}
                    factor = {over(m, monomial): c // coefficient}
                    add_to(sums, multiply_terms(factor.items(), terms_of(replacement)).items())
                    break
            else:
                break
        return sums

    def check(self, other: SymbolicDim, reference: SymbolicDim, context: str) -> None:
        """Raise ValueError unless the dimension `other` belongs to this scope."""
        if other.scope is not self:
            text = (
                f"Invalid mixing of symbolic scopes {context}.\nExpected {self} (that of '{reference}')\nand found for"
                f" '{other}' {other.scope}\nMake the dimensions with one call of symbolic_shape, or give `scope`."
            )
            raise ValueError(coded("BX-DIM-SCOPES", text))

    def __str__(self) -> str:
        where = f" created at {source.describe(self.place)}" if self.place is not None else ""
        text = f"scope {id(self)}{where}"
        if self.constraints_str:
            text += " with constraints:\n" + "\n".join(f"  {c}" for c in self.constraints_str)
        return text

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return SymbolicScope, (self.constraints_str,)
