"""Symbolic dimensions: integer polynomials over dimension variables.

A dimension is a sum of terms, kept in one canonical form so that equal polynomials are equal objects:

    dimension ::= term + ... + term                      term ::= integer * monomial
    monomial  ::= atom^n * ... * atom^n  (or nothing)    atom ::= variable | Operation

An `Operation` is a `floordiv`, `mod`, `max` or `min` that cannot be simplified. Integer results are
Python integers. `bounds` decides comparisons.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax import lax
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.core.avals import aval_functions
from bedrax.core.codes import coded
from bedrax.shape_poly.bounds import bounds, decide, replace
from bedrax.shape_poly.terms import (
    Monomial,
    Operation,
    add_to,
    content,
    monomial_key,
    multiply_terms,
    over,
    terms_of,
    text_of,
)
from bedrax.shape_poly.values import dim_as_value_p, value_type

if TYPE_CHECKING:
    from bedrax.shape_poly.scope import SymbolicScope


def make(scope: SymbolicScope, sums: Mapping[Monomial, int]) -> Any:
    """The dimension with these terms, after applying the equalities of the scope; an int if it is constant."""
    sums = scope.rewrite(sums) if scope.rules else sums
    return raw(scope, sums)


def raw(scope: SymbolicScope, sums: Mapping[Monomial, int]) -> Any:
    """Like `make`, without the equalities of the scope."""
    if not sums:
        return 0
    if len(sums) == 1 and () in sums:
        return sums[()]
    return SymbolicDim(scope, tuple(sorted(sums.items(), key=lambda t: monomial_key(t[0]), reverse=True)))


def variable(scope: SymbolicScope, name: str) -> Any:
    """A dimension variable."""
    return make(scope, {((name, 1),): 1})


def as_integer(x: Any) -> int | None:
    """`x` as a Python integer if it is one (or a NumPy integer, or another object with `__index__`), else None."""
    if type(x) is int:
        return x
    if isinstance(x, SymbolicDim) or hasattr(x, "aval") or not hasattr(type(x), "__index__"):
        return None
    if isinstance(x, np.ndarray) and (x.ndim or x.dtype.kind not in "iu"):
        return None
    return operator.index(x)


def _arithmetic(name: str, symbolic: Callable) -> tuple[Callable, Callable]:
    """An operator and its reflection: symbolic for dimensions and integers, on arrays otherwise."""
    plain = getattr(operator, name, divmod)

    def other_dimension(self, other):
        if isinstance(other, SymbolicDim):
            self.scope.check(other, self, "for linear combination")
            return other
        return as_integer(other)

    def forward(self, other):
        given = other_dimension(self, other)
        if given is not None:
            return symbolic(self, given)
        return plain(self.as_value(), other) if _is_array_like(other) else NotImplemented

    def backward(self, other):
        given = other_dimension(self, other)
        if given is not None:
            return symbolic(given, self)
        return plain(other, self.as_value()) if _is_array_like(other) else NotImplemented

    return forward, backward


def _is_array_like(x: Any) -> bool:
    return isinstance(x, (float, complex, np.ndarray, np.generic)) or hasattr(x, "aval") or hasattr(x, "__jax_array__")


def _scope_of(x, y):
    return x.scope if type(x) is not int else y.scope


def _add(x, y):
    return make(_scope_of(x, y), add_to(dict(terms_of(x)), terms_of(y)))


def _subtract(x, y):
    return make(_scope_of(x, y), add_to(dict(terms_of(x)), terms_of(y), -1))


def _multiply(x, y):
    return make(_scope_of(x, y), multiply_terms(terms_of(x), terms_of(y)))


def _divmod(x, y):
    return _divide(_scope_of(x, y), x, y)


def _comparison(symbol: str) -> Callable:
    plain = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}[symbol]

    def compare(self, other):
        if isinstance(other, SymbolicDim):
            self.scope.check(other, self, f"when comparing '{self}' {symbol} '{other}'")
            given = other
        else:
            given = as_integer(other)
            if given is None:
                return plain(self.as_value(), other) if _is_array_like(other) else NotImplemented
        return decide(self, symbol, given)

    return compare


class SymbolicDim:
    """A dimension that is an expression in dimension variables.

    Arithmetic with integers and other such dimensions gives dimensions (integers if the result is constant).
    Arithmetic with floats and arrays gives arrays. `==` is true if both sides are equal for all values of the
    variables, and false otherwise. `<` and the like raise `InconclusiveDimensionOperation` if the result depends on
    the values.

    Attributes:
      scope: the `SymbolicScope` with the constraints on the variables.
    """

    __slots__ = ("_hash", "_text", "scope", "terms")
    __array_ufunc__ = None  # NumPy arrays return NotImplemented for their operators
    __array_priority__ = 1000

    def __init__(self, scope: SymbolicScope, terms: tuple[Any, ...]) -> None:
        self.scope: SymbolicScope = scope
        self.terms: tuple[Any, ...] = terms
        self._hash = None
        self._text = None

    # ---- arithmetic ----

    if TYPE_CHECKING:

        def __add__(self, other: Any, /) -> Any: ...

        def __radd__(self, other: Any, /) -> Any: ...

        def __sub__(self, other: Any, /) -> Any: ...

        def __rsub__(self, other: Any, /) -> Any: ...

        def __mul__(self, other: Any, /) -> Any: ...

        def __rmul__(self, other: Any, /) -> Any: ...

        def __floordiv__(self, other: Any, /) -> Any: ...

        def __rfloordiv__(self, other: Any, /) -> Any: ...

        def __mod__(self, other: Any, /) -> Any: ...

        def __rmod__(self, other: Any, /) -> Any: ...

        def __divmod__(self, other: Any, /) -> Any: ...

        def __rdivmod__(self, other: Any, /) -> Any: ...

    else:
        __add__, __radd__ = _arithmetic("add", _add)
        __sub__, __rsub__ = _arithmetic("sub", _subtract)
        __mul__, __rmul__ = _arithmetic("mul", _multiply)
        __floordiv__, __rfloordiv__ = _arithmetic("floordiv", lambda x, y: _divmod(x, y)[0])
        __mod__, __rmod__ = _arithmetic("mod", lambda x, y: _divmod(x, y)[1])
        __divmod__, __rdivmod__ = _arithmetic("divmod", _divmod)

    def __truediv__(self, other: int) -> Array:
        return self.as_value() / (other.as_value() if isinstance(other, SymbolicDim) else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.as_value()

    def __neg__(self) -> SymbolicDim:
        return _multiply(self, -1)

    def __pos__(self) -> Any:
        return self

    def __pow__(self, exponent: int, modulo: Any = None) -> SymbolicDim:
        n = as_integer(exponent)
        if modulo is not None:
            return NotImplemented
        if n is None:
            return self.as_value() ** exponent
        if n < 0:
            raise ValueError(f"a symbolic dimension has no negative powers, got '{self}' ** {exponent}")
        out: Any = 1
        for _ in range(n):
            out = out * self
        return out

    def __rpow__(self, base: Any) -> Any:
        return base ** self.as_value()

    def __abs__(self) -> Any:
        return self.max(-self)

    def max(self, other: Any) -> Any:
        """The larger of two dimensions; symbolic if that depends on the values."""
        return extreme("max", self, other)

    def min(self, other: Any) -> Any:
        """The smaller of two dimensions; symbolic if that depends on the values."""
        return extreme("min", self, other)

    # ---- comparisons ----

    __ge__: Callable[..., Any] = _comparison(">=")
    __le__: Callable[..., Any] = _comparison("<=")
    __gt__: Callable[..., Any] = _comparison(">")
    __lt__: Callable[..., Any] = _comparison("<")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymbolicDim):
            return self is other or (self.scope is other.scope and self.terms == other.terms)
        if type(other) is int or as_integer(other) is not None:
            return False  # a constant dimension is an int
        if isinstance(other, np.ndarray) or hasattr(other, "aval"):
            return self.as_value() == other
        return False if _is_array_like(other) else NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        if equal is NotImplemented:
            return NotImplemented
        return not equal if type(equal) is bool else self.as_value() != other

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((id(self.scope), self.terms))
        return self._hash

    # ---- conversions to numbers ----

    def _constant_needed(self):
        raise dims.InconclusiveDimensionOperation(
            coded(
                "BX-DIM-VALUE",
                f"Symbolic dimension '{self}' used in a context that requires a constant. Its value is not known while"
                " the program is traced: use it as a dimension, or as an array (jnp.array makes one of it).",
            )
        )

    def __int__(self) -> int:
        return self._constant_needed()

    def __float__(self) -> float:
        return self._constant_needed()

    def __complex__(self) -> complex:
        return self._constant_needed()

    def __bool__(self) -> bool:
        return self != 0

    def as_value(self) -> Any:
        """The dimension as an integer array of rank 0 (weakly typed): its value at run time."""
        return dim_as_value_p.bind(dim=self)

    __jax_array__ = as_value

    # ---- reading ----

    @property
    def variables(self) -> set[str]:
        """The names of the variables in the dimension."""
        found: set[str] = set()
        for m, _ in self.terms:
            for atom, _ in m:
                if type(atom) is str:
                    found.add(atom)
                else:
                    for arg in (atom.x, atom.y):
                        if type(arg) is not int:
                            found |= arg.variables
        return found

    def evaluate(self, env: Mapping[str, Any]) -> Any:
        """The value for variables with the values in `env`.

        Values may be integers, arrays, tensors or symbolic dimensions: objects with `+ - * // %` and, for a
        dimension with maxima or minima, these.

        Raises:
          KeyError: a variable is not in `env`.
        """
        total = None
        for m, c in self.terms:
            product = None
            for atom, n in m:
                value = _evaluate_atom(atom, env)
                for _ in range(n):
                    product = value if product is None else product * value
            if product is None:
                product = c
            elif c == -1 and total is not None:
                total = total - product
                continue
            elif c != 1:
                product = product * c
            total = product if total is None else total + product
        return total

    def replaced(self, atom: Operation, value: Any) -> Any:
        """The dimension with an atom replaced by a dimension; `self` if it has no such atom."""
        terms = dict(self.terms)
        new = replace(terms, atom, value)
        return self if new == terms else make(self.scope, new)

    @staticmethod
    def operation(kind: str, x: Any, y: Any) -> Any:
        """``floordiv``, ``mod``, ``max`` or ``min`` of two dimensions or integers."""
        return _EVALUATE[kind](x, y)

    def __str__(self) -> str:
        if self._text is None:
            self._text = text_of(self.terms)
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return SymbolicDim, (self.scope, self.terms)


def _evaluate_atom(atom, env):
    if type(atom) is str:
        try:
            return env[atom]
        except KeyError:
            known = ", ".join(map(repr, sorted(env)))
            raise UnexpectedDimVar(
                coded(
                    "BX-DIM-UNSOLVABLE",
                    f"Encountered dimension variable '{atom}' that is not appearing in the shapes of the function"
                    f" arguments. The following dimension variables are appearing there: [{known}].",
                )
            ) from None
    x, y = (arg if type(arg) is int else arg.evaluate(env) for arg in (atom.x, atom.y))
    return _EVALUATE[atom.kind](x, y)


class UnexpectedDimVar(KeyError):
    """A dimension variable that the arguments of the function do not determine."""

    def __str__(self) -> str:
        return str(self.args[0])


def _extreme_of_values(name: str, builtin: Callable) -> Callable:
    def function(x, y):
        if type(x) is int and type(y) is int:
            return builtin(x, y)
        value = y if type(x) is int else x
        if isinstance(value, (np.ndarray, np.generic)):
            return getattr(np, name + "imum")(x, y)
        if hasattr(value, "aval"):
            return lax.convert_element_type(
                getattr(lax, name)(lax.convert_element_type(x, value.dtype), lax.convert_element_type(y, value.dtype)),
                value.dtype,
            )
        return getattr(value, name)(x if value is y else y)

    return function


_EVALUATE = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": _extreme_of_values("max", max),
    "min": _extreme_of_values("min", min),
}


def extreme(kind: str, x: Any, y: Any) -> Any:
    """The larger (`kind` "max") or smaller ("min") one of two dimensions."""
    given = [d if isinstance(d, SymbolicDim) else as_integer(d) for d in (x, y)]
    if None in given:
        raise TypeError(f"{kind} of dimensions needs integers and symbolic dimensions; got {x!r} and {y!r}")
    x, y = given
    if type(x) is int and type(y) is int:
        return max(x, y) if kind == "max" else min(x, y)
    scope = _scope_of(x, y)
    for d in (x, y):
        if type(d) is not int:
            scope.check(d, x, f"for {kind}")
    low, high = bounds(x - y)
    if low >= 0:
        return x if kind == "max" else y
    if high <= 0:
        return y if kind == "max" else x
    if type(x) is int or (type(y) is not int and _term_order(y) < _term_order(x)):
        x, y = y, x
    return make(scope, {((Operation(kind, x, y), 1),): 1})


def _term_order(x: SymbolicDim) -> tuple:
    return tuple([(monomial_key(m), c) for m, c in x.terms])


# ---- division: divisible terms are divided, the others become `floordiv` and `mod` atoms


def _divide(scope, x: Any, y: Any) -> tuple[Any, Any]:
    """`divmod(x, y)`: `x == q * y + r` where `r` has the sign of `y` and is smaller.

    Raises:
      ZeroDivisionError: `y` is 0.
    """
    if type(y) is int:
        if y == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        if y < 0:  # floor(x / y) = floor(-x / -y)
            quotient, rest = _divide(scope, -x, -y)
            return quotient, -rest
        return _by_integer(scope, x, y)
    quotient, rest = _long_division(terms_of(x), y.terms)
    if not rest:
        return make(scope, quotient), 0
    q, r = make(scope, quotient), make(scope, rest)
    if quotient and _fits(r, y):
        return q, r
    if quotient and _fits(r + y, y):
        return q - 1, r + y
    if _fits(x, y):
        return 0, x
    return _atom(scope, "floordiv", x, y), _atom(scope, "mod", x, y)


def _fits(r, y) -> bool:
    """Whether `0 <= r < y` for all values."""
    return bounds(r)[0] >= 0 and bounds(y - r)[0] > 0


def _atom(scope, kind: str, x, y):
    return make(scope, {((Operation(kind, x, y), 1),): 1})


def _by_integer(scope, x, n: int) -> tuple[Any, Any]:
    """Division by a positive integer: multiples of it are divided, common factors are cancelled."""
    whole: dict[Any, Any] = {}
    part: dict[Any, Any] = {}
    for m, c in x.terms:
        if c % n == 0:
            whole[m] = c // n
        elif (found := scope.divided(m, c, n)) is not None:
            add_to(whole, found)
        elif m:
            part[m] = c
        else:
            quotient, part[m] = divmod(c, n)
            add_to(whole, [(m, quotient)])
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
    """Polynomial division by the leading term of `y`; stops at a term that is not divisible."""
    rest, quotient = dict(x), {}
    lead, coefficient = y[0]
    while rest:
        m = max(rest, key=monomial_key)
        power = over(m, lead)
        if power is None or rest[m] % coefficient:
            break
        term = {power: rest[m] // coefficient}
        add_to(quotient, term.items())
        add_to(rest, multiply_terms(term.items(), y).items(), -1)
    return quotient, rest


dims.register_symbolic(SymbolicDim)
aval_functions[SymbolicDim] = lambda d: value_type()
