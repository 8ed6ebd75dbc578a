"""Symbolic dimensions: integer polynomials over dimension variables.

A dimension is a sum of terms, kept in one canonical form so that equal polynomials are equal objects:

    dimension ::= term + ... + term                      term ::= integer * monomial
    monomial  ::= atom^n * ... * atom^n  (or nothing)    atom ::= variable | Operation

An `Operation` is a `floordiv`, `mod`, `max` or `min` that could not be made simpler. Results that are integers are
Python integers. How comparisons are decided is the business of `bounds`.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bedrax.core import dims

Monomial = tuple  # of (atom, exponent), ascending; () is the constant one

DOCUMENTATION = "https://docs.jax.dev/en/latest/export/shape_poly.html"


class Operation(NamedTuple):
    """An atom: `floordiv(x, y)`, `mod(x, y)`, `max(x, y)` or `min(x, y)`."""

    kind: str
    x: Any
    y: Any

    def __str__(self):
        return f"{self.kind}({_argument(self.x)}, {_argument(self.y)})"


def _argument(x) -> str:
    return f"- {-x}" if type(x) is int and x < 0 else str(x)


def _atom_key(atom) -> tuple:
    return (0, atom) if type(atom) is str else (1, str(atom))


def _monomial_key(m: Monomial) -> tuple:
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
    """Quotient of monomials; None where it is not a monomial."""
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


def add_to(
    sums: dict[Monomial, int], terms: Iterable[tuple[Monomial, int]], factor: int = 1
) -> dict[Monomial, int]:
    """Add `factor` times the terms to `sums` (in place)."""
    for m, c in terms:
        total = sums.get(m, 0) + c * factor
        if total:
            sums[m] = total
        else:
            sums.pop(m, None)
    return sums


def terms_of(x: Any) -> tuple:
    """Terms of a dimension or of an integer."""
    if type(x) is int:
        return (((), x),) if x else ()
    return x.terms


def multiply_terms(x: Iterable, y: Iterable) -> dict[Monomial, int]:
    y = tuple(y)
    out: dict[Monomial, int] = {}
    for m1, c1 in x:
        add_to(out, [(times(m1, m2), c2) for m2, c2 in y], c1)
    return out


def make(scope, sums: Mapping[Monomial, int]) -> Any:
    """The dimension with these terms, after the equalities of the scope are applied; an int if it is constant."""
    sums = scope.rewrite(sums) if scope.rules else sums
    return raw(scope, sums)


def raw(scope, sums: Mapping[Monomial, int]) -> Any:
    """Like `make`, without the equalities of the scope."""
    if not sums:
        return 0
    if len(sums) == 1 and () in sums:
        return sums[()]
    return SymbolicDim(scope, tuple(sorted(sums.items(), key=lambda t: _monomial_key(t[0]), reverse=True)))


def variable(scope, name: str) -> Any:
    """A dimension variable."""
    return make(scope, {((name, 1),): 1})


def as_integer(x: Any) -> int | None:
    """`x` as a Python integer, if it is one (or a NumPy integer, or anything else with `__index__`)."""
    if type(x) is int:
        return x
    if isinstance(x, SymbolicDim) or hasattr(x, "aval") or not hasattr(type(x), "__index__"):
        return None
    if isinstance(x, np.ndarray) and (x.ndim or x.dtype.kind not in "iu"):
        return None
    return operator.index(x)


def _arithmetic(name: str, symbolic: Callable) -> tuple[Callable, Callable]:
    """An operator and its reflection: symbolic on dimensions and integers, on arrays with anything else."""
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
    return (
        isinstance(x, (float, complex, np.ndarray, np.generic))
        or hasattr(x, "aval")
        or hasattr(x, "__jax_array__")
    )


def _scope_of(x, y):
    return x.scope if type(x) is not int else y.scope


def _add(x, y):
    return make(_scope_of(x, y), add_to(dict(terms_of(x)), terms_of(y)))


def _subtract(x, y):
    return make(_scope_of(x, y), add_to(dict(terms_of(x)), terms_of(y), -1))


def _multiply(x, y):
    return make(_scope_of(x, y), multiply_terms(terms_of(x), terms_of(y)))


def _divmod(x, y):
    from bedrax.shape_poly import division

    return division.divide(_scope_of(x, y), x, y)


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
        from bedrax.shape_poly import bounds

        return bounds.decide(self, symbol, given)

    return compare


class SymbolicDim:
    """A dimension that is known as an expression in dimension variables.

    Arithmetic with integers and other such dimensions gives dimensions (integers where the result is constant);
    with floats and arrays it gives arrays. `==` is true if both sides are equal for all values of the variables and
    false otherwise; `<` and the like raise `InconclusiveDimensionOperation` where the answer depends on the values.

    Attributes:
      scope: the `SymbolicScope` that knows what is assumed of the variables.
    """

    __slots__ = ("_hash", "_text", "scope", "terms")
    __array_ufunc__ = None  # NumPy arrays leave operators to us
    __array_priority__ = 1000

    def __init__(self, scope, terms: tuple):
        self.scope = scope
        self.terms = terms
        self._hash = None
        self._text = None

    # ---- arithmetic ----

    __add__, __radd__ = _arithmetic("add", _add)
    __sub__, __rsub__ = _arithmetic("sub", _subtract)
    __mul__, __rmul__ = _arithmetic("mul", _multiply)
    __floordiv__, __rfloordiv__ = _arithmetic("floordiv", lambda x, y: _divmod(x, y)[0])
    __mod__, __rmod__ = _arithmetic("mod", lambda x, y: _divmod(x, y)[1])
    __divmod__, __rdivmod__ = _arithmetic("divmod", _divmod)

    def __truediv__(self, other):
        return self.as_value() / (other.as_value() if isinstance(other, SymbolicDim) else other)

    def __rtruediv__(self, other):
        return other / self.as_value()

    def __neg__(self):
        return _multiply(self, -1)

    def __pos__(self):
        return self

    def __pow__(self, exponent, modulo=None):
        n = as_integer(exponent)
        if modulo is not None or n is None or n < 0:
            return NotImplemented if modulo is not None else self.as_value() ** exponent
        out: Any = 1
        for _ in range(n):
            out = out * self
        return out

    def __rpow__(self, base):
        return base ** self.as_value()

    def __abs__(self):
        return self.max(-self)

    def max(self, other: Any) -> Any:
        """The larger of two dimensions; symbolic where that depends on the values."""
        return extreme("max", self, other)

    def min(self, other: Any) -> Any:
        """The smaller of two dimensions; symbolic where that depends on the values."""
        return extreme("min", self, other)

    # ---- comparisons ----

    __ge__ = _comparison(">=")
    __le__ = _comparison("<=")
    __gt__ = _comparison(">")
    __lt__ = _comparison("<")

    def __eq__(self, other):
        if isinstance(other, SymbolicDim):
            return self is other or (self.scope is other.scope and self.terms == other.terms)
        if type(other) is int or as_integer(other) is not None:
            return False  # a constant dimension is an int
        if isinstance(other, np.ndarray) or hasattr(other, "aval"):
            return self.as_value() == other
        return False if _is_array_like(other) else NotImplemented

    def __ne__(self, other):
        equal = self.__eq__(other)
        if equal is NotImplemented:
            return NotImplemented
        return not equal if type(equal) is bool else self.as_value() != other

    def __hash__(self):
        if self._hash is None:
            self._hash = hash((id(self.scope), self.terms))
        return self._hash

    # ---- where a number is needed ----

    def _constant_needed(self):
        raise dims.InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant. Its value is not known while the"
            " program is traced: use it as a dimension, or as an array (jnp.array makes one of it). See"
            f" {DOCUMENTATION}#comparison-of-symbolic-dimensions-is-partially-supported"
        )

    def __int__(self):
        return self._constant_needed()

    def __float__(self):
        return self._constant_needed()

    def __complex__(self):
        return self._constant_needed()

    def __bool__(self):
        return self != 0

    def as_value(self) -> Any:
        """The dimension as an integer array of rank 0 (weakly typed): its value when the program runs."""
        from bedrax.shape_poly.values import dim_as_value_p

        return dim_as_value_p.bind(dim=self)

    __jax_array__ = as_value

    # ---- reading ----

    @property
    def variables(self) -> set[str]:
        """Names of the variables in it."""
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
        """The value, where variables have the values in `env`.

        Values may be integers, arrays, tensors or symbolic dimensions: all they need is `+ - * // %` and, where the
        dimension has maxima or minima, these.

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

    def __str__(self):
        if self._text is None:
            self._text = _text(self.terms)
        return self._text

    __repr__ = __str__

    def __reduce__(self):
        from bedrax.shape_poly.specs import _unpickle

        return _unpickle, (str(self), self.scope)


def _evaluate_atom(atom, env):
    if type(atom) is str:
        try:
            return env[atom]
        except KeyError:
            known = ", ".join(map(repr, sorted(env)))
            raise UnexpectedDimVar(
                f"Encountered dimension variable '{atom}' that is not appearing in the shapes of the function"
                f" arguments. The following dimension variables are appearing there: [{known}]. See"
                f" {DOCUMENTATION}#dimension-variables-must-be-solvable-from-the-input-shapes"
            ) from None
    x, y = (arg if type(arg) is int else arg.evaluate(env) for arg in (atom.x, atom.y))
    return _EVALUATE[atom.kind](x, y)


class UnexpectedDimVar(KeyError):
    """A dimension variable that the arguments of the function do not determine."""

    def __str__(self):
        return str(self.args[0])


def _extreme_of_values(name: str, builtin: Callable) -> Callable:
    def function(x, y):
        if type(x) is int and type(y) is int:
            return builtin(x, y)
        value = y if type(x) is int else x
        if isinstance(value, (np.ndarray, np.generic)):
            return getattr(np, name + "imum")(x, y)
        if type(value).__module__.split(".")[0] == "tensorflow":
            # A tensor is at hand, so TensorFlow is loaded; this layer does not import it.
            return getattr(sys.modules["tensorflow"], name + "imum")(x, y)
        if hasattr(value, "aval"):
            from bedrax import lax

            return lax.convert_element_type(
                getattr(lax, name)(
                    lax.convert_element_type(x, value.dtype), lax.convert_element_type(y, value.dtype)
                ),
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
    """The larger (`kind` "max") or smaller ("min") of two dimensions."""
    given = [d if isinstance(d, SymbolicDim) else as_integer(d) for d in (x, y)]
    if None in given:
        raise TypeError(f"{kind} of dimensions needs integers and symbolic dimensions; got {x!r} and {y!r}")
    x, y = given
    if type(x) is int and type(y) is int:
        return max(x, y) if kind == "max" else min(x, y)
    from bedrax.shape_poly import bounds

    scope = _scope_of(x, y)
    for d in (x, y):
        if type(d) is not int:
            scope.check(d, x, f"for {kind}")
    low, high = bounds.bounds(x - y)
    if low >= 0:
        return x if kind == "max" else y
    if high <= 0:
        return y if kind == "max" else x
    if type(x) is int or (type(y) is not int and _term_order(y) < _term_order(x)):
        x, y = y, x
    return make(scope, {((Operation(kind, x, y), 1),): 1})


def _term_order(x: SymbolicDim) -> tuple:
    return tuple([(_monomial_key(m), c) for m, c in x.terms])


def content(terms: Iterable[tuple[Monomial, int]]) -> int:
    """Greatest common divisor of the coefficients of the terms that are not constant."""
    return math.gcd(*[c for m, c in terms if m])


def _text(terms: tuple) -> str:
    parts = []
    for m, c in terms:
        size = abs(c)
        factors = [str(size)] if size != 1 or not m else []
        factors += [str(a) if n == 1 else f"{a}^{n}" for a, n in m]
        sign = "- " if c < 0 else "+ "
        parts.append(sign + "*".join(factors))
    return " ".join(parts).removeprefix("+ ")


dims.register_symbolic(SymbolicDim)
