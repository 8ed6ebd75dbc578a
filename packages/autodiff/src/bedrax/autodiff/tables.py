"""The differentiation columns: their tables, the row kinds, and what rules share.

A tangent (or cotangent) is a value, or `Zero(aval)` where it is known to vanish; operands
that are not differentiated have tangents `Zero`, and integers always do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.columns import Column
from bedrax.lax.primitives.elementwise import add_jaxvals_p
from bedrax.lax.symbolic_zeros import LazilyTyped, Zero, instantiate

jvp_rules = Column("jvp", "bedrax.autodiff.rules")
transpose_rules = Column("transpose", "bedrax.autodiff.rules")
linearize_rules = Column("linearize", "bedrax.autodiff.rules")


class UndefinedPrimal(LazilyTyped):
    """Marks, for transpose rules, an argument that the operation is linear in."""

    __slots__ = ()

    @property
    def aval(self) -> AbstractValue:
        found = self._aval
        if found is None:
            found = self._aval = aval_of(self._of)
            self._of = None
        return found


def is_undefined(x: Any) -> bool:
    """Whether a transpose rule's argument is one that the operation is linear in."""
    return type(x) is UndefinedPrimal


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    return add_jaxvals_p.bind(x, y)


def unbroadcast(aval: AbstractValue, ct: Any) -> Any:
    """Sum a cotangent down to an operand of rank 0 that was broadcast against ranked ones."""
    if type(ct) is Zero:
        return Zero(aval)
    if aval.shape:  # then it has the shape of the result
        return ct
    shape = aval_of(ct).shape
    if not shape:
        return ct
    from bedrax.lax.primitives.reductions import reduce_sum_p

    return reduce_sum_p.bind(ct, axes=tuple(range(len(shape))))


def jvp(prim, *formulas: Callable | None) -> None:
    """A row with one formula ``(t, ans, *primals, **params) -> tangent`` per operand."""
    multiple = prim.multiple_results

    def rule(primals, tangents, **params):
        ans = prim.bind(*primals, **params)
        total = None
        for formula, t in zip(formulas, tangents, strict=True):
            if formula is not None and type(t) is not Zero:
                term = formula(t, ans, *primals, **params)
                total = term if total is None else add_tangents(total, term)
        if total is None:
            total = [Zero.of(a) for a in ans] if multiple else Zero.of(ans)
        return ans, total

    jvp_rules.add(prim, rule, "formula")


def linear(prim, transpose: Callable | None = None, kind: str = "linear") -> None:
    """A row for a primitive that is linear in all its operands together."""

    def rule(primals, tangents, **params):
        ans = prim.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            tangent = [Zero.of(a) for a in ans] if prim.multiple_results else Zero.of(ans)
        else:
            tangent = prim.bind(*map(instantiate, tangents), **params)
        return ans, tangent

    jvp_rules.add(prim, rule, kind)
    if transpose is not None:
        transpose_rules.add(prim, transpose, kind)


def bilinear(prim, lhs_transpose: Callable, rhs_transpose: Callable) -> None:
    """A row for a primitive that is linear in each of its two operands.

    ``lhs_transpose(ct, lhs, rhs, **params)`` gets `lhs` as `UndefinedPrimal`; likewise `rhs`.
    """

    def jvp_rule(primals, tangents, **params):
        x, y = primals
        tx, ty = tangents
        ans = prim.bind(x, y, **params)
        out: Any = None
        if type(tx) is not Zero:
            out = prim.bind(tx, y, **params)
        if type(ty) is not Zero:
            term = prim.bind(x, ty, **params)
            out = term if out is None else add_tangents(out, term)
        return ans, Zero.of(ans) if out is None else out

    def transpose_rule(ct, x, y, **params):
        if is_undefined(x) and is_undefined(y):
            raise ValueError(f"'{prim}' is not linear in both operands together")
        if is_undefined(x):
            return [lhs_transpose(ct, x, y, **params), None]
        return [None, rhs_transpose(ct, x, y, **params)]

    jvp_rules.add(prim, jvp_rule, "bilinear")
    transpose_rules.add(prim, transpose_rule, "bilinear")


def zero(*prims) -> None:
    """Rows for primitives whose derivative vanishes wherever it exists."""
    for prim in prims:

        def rule(primals, tangents, *, prim=prim, **params):
            ans = prim.bind(*primals, **params)
            if prim.multiple_results:
                return ans, [Zero.of(a) for a in ans]
            return ans, Zero.of(ans)

        jvp_rules.add(prim, rule, "zero")
        transpose_rules.absent(prim, why="its derivative is zero: nothing linear is left to transpose")


def absent(*prims, why: str) -> None:
    """Rows that say why a primitive has no derivative."""
    jvp_rules.absent(*prims, why=why)
    transpose_rules.absent(*prims, why=why)


def not_transposable(*prims, why: str) -> None:
    """Rows that say why a primitive with a jvp has no transpose."""
    transpose_rules.absent(*prims, why=why)
