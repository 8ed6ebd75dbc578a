"""Shape specifications: text such as ``"(b, 2*h + 1, _, ...)"`` as shapes.

shape     ::= "(" [items] ")" | [items]        items ::= item ("," item)* [","]
item      ::= sum | "_" | "..."                sum   ::= ["+" | "-"] product (("+" | "-") ["-"] product)*
product   ::= power (("*" | "//" | "%") ["-"] power)*
power     ::= primary ["^" integer]
primary   ::= integer | name | "(" sum ")" | ("floordiv" | "mod" | "max" | "min") "(" sum "," sum ")"
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bedrax.shape_poly import expressions

if TYPE_CHECKING:
    from bedrax.shape_poly.scope import SymbolicScope


_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d*)?)|(?P<name>[^\W\d]\w*)|(?P<dots>\.\.\.)|(?P<other>//|\S))")


class _Reader:
    """Reads one specification, token by token."""

    def __init__(self, text: str, scope: SymbolicScope, like: Sequence[int | None] | None, shown: Any) -> None:
        self.text, self.scope, self.like, self.shown = text, scope, like, shown
        self.dimension = 0
        self.tokens = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            found = _TOKEN.match(stripped, position)
            self.tokens.append((found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup)))
            position = found.end()
        self.tokens.append(("end", "", len(text)))
        self.i = 0

    @property
    def token(self) -> str:
        return self.tokens[self.i][1]

    def error(self, problem: str) -> ValueError:
        at = self.tokens[self.i][2]
        return ValueError(
            f"syntax error in symbolic shape {self.shown!r} in dimension {self.dimension}: {problem}."
            f" Parsed '{self.text[:at]}', remaining '{self.text[at:]}'."
        )

    def take(self, token: str) -> bool:
        if self.token == token and self.tokens[self.i][0] != "end":
            self.i += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.error(f"expected '{token}', found '{self.token or 'the end'}'")

    def end(self) -> None:
        if self.tokens[self.i][0] != "end":
            raise self.error(f"unexpected '{self.token}'; expected an operator, a comma, or the end")

    def shape(self) -> tuple[Any, ...]:
        closed = self.enclosed() and self.take("(")
        found: list[Any] = []
        while self.tokens[self.i][0] != "end" and self.token != ")":
            if self.take("..."):
                found.extend(self.placeholder(i) for i in range(self.dimension, self.rank()))
                self.dimension = len(found)
                break
            found.append(self.item())
            if not self.take(","):
                break
            self.dimension += 1
        if closed:
            self.expect(")")
        self.end()
        if self.like is not None and len(found) != len(self.like):
            raise self.error(
                f"it has {len(found)} dimensions, the shape it is for has {len(self.like)}; like={self.like}"
            )
        return tuple(found)

    def enclosed(self) -> bool:
        """Whether one pair of parentheses (or one that is never closed) encloses the text."""
        depth = 0
        for i, (_, text, _) in enumerate(self.tokens):
            depth += (text == "(") - (text == ")")
            if depth == 0:
                return i > 0 and i == len(self.tokens) - 2
        return True

    def rank(self) -> int:
        if self.like is None:
            self.i -= 1
            raise self.error("spec contains ... but no 'like' shape was given, from which placeholders are filled")
        return len(self.like)

    def placeholder(self, i: int) -> int:
        if i >= self.rank():
            raise self.error(f"the shape it is for has {len(self.like)} dimensions; like={self.like}")
        size = self.like[i]
        if size is None:
            named = ", ".join("_" if d is not None else f"d{k}" for k, d in enumerate(self.like))
            raise self.error(
                f"unexpected placeholder for unknown dimension; like={self.like}. Name the dimension in the specification, as in '({named})'"
            )
        return size

    def item(self) -> Any:
        if self.token == "_":
            self.i += 1
            return self.placeholder(self.dimension)
        found = self.sum()
        known = self.like[self.dimension] if self.like is not None and self.dimension < len(self.like) else None
        if type(found) is int and known is not None and type(known) is int and known != found:
            raise self.error(f"different size {found} for known dimension; like={self.like}")
        return found

    def sum(self) -> Any:
        negative = self.take("-")
        if not negative:
            self.take("+")
        total = -self.product() if negative else self.product()
        while self.token in ("+", "-") and self.tokens[self.i][0] != "end":
            negative = self.take("-") or not self.take("+")
            if self.take("-"):
                negative = not negative
            term = self.product()
            total = total - term if negative else total + term
        return total

    def product(self) -> Any:
        total = self.power()
        while self.token in _PRODUCTS:
            combine = _PRODUCTS[self.token]
            self.i += 1
            negative = self.take("-")
            factor = self.power()
            total = combine(total, -factor if negative else factor)
        return total

    def power(self) -> Any:
        base = self.primary()
        if not self.take("^"):
            return base
        kind, text, _ = self.tokens[self.i]
        if kind != "number" or not text.isdigit():
            raise self.error(f"expected an integer exponent, found '{text or 'the end'}'")
        self.i += 1
        return base ** int(text)

    def primary(self) -> Any:
        kind, text, _ = self.tokens[self.i]
        if kind == "number":
            if not text.isdigit():
                raise self.error(f"expecting integer, found {text}")
            self.i += 1
            return int(text)
        if self.take("("):
            inner = self.sum()
            self.expect(")")
            return inner
        if kind != "name" or text == "_":
            raise self.error(f"expected a variable, an integer or an operation, found '{text or 'the end'}'")
        self.i += 1
        if text in _OPERATIONS and self.token == "(":
            self.expect("(")
            x = self.sum()
            self.expect(",")
            y = self.sum()
            self.expect(")")
            return _OPERATIONS[text](x, y)
        return expressions.variable(self.scope, text)


_PRODUCTS = {"*": operator.mul, "//": operator.floordiv, "%": operator.mod}
_OPERATIONS = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": lambda x, y: expressions.extreme("max", x, y),
    "min": lambda x, y: expressions.extreme("min", x, y),
}


def parse_shape(spec: str | None, scope: SymbolicScope, like: Sequence[int | None] | None = None) -> tuple[Any, ...]:
    """The shape of a specification.

    Args:
      spec: the text; None stands for ``"..."``.
      scope: the scope of its variables.
      like: a shape that supplies ``_`` and ``...``; None in it stands for unknown dimensions.

    Raises:
      ValueError: syntax errors; placeholders that `like` does not supply; known dimensions that differ.
    """
    if spec is not None and not isinstance(spec, str):
        raise ValueError(f"symbolic shape specification must be None or a string, got {spec!r}")
    return _Reader("..." if spec is None else spec, scope, None if like is None else tuple(like), spec).shape()


def parse_dimension(text: str, scope: SymbolicScope) -> Any:
    """The dimension of an expression."""
    reader = _Reader(text, scope, None, text)
    found = reader.sum()
    reader.end()
    return found
