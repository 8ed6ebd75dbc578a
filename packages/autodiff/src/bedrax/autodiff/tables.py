"""The differentiation columns: their tables, the row kinds, and functions shared by rules.

A tangent (or cotangent) is a value, or `Zero(aval)` where it is known to vanish; operands
that are not differentiated have tangents `Zero`, and integers always do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from bedrax.core import avals, dtypes
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.columns import Column
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.elementwise import add_jaxvals_p
from bedrax.lax.primitives.placement import anywhere, cotangent_type, is_split, placed_result
from bedrax.lax.primitives.reductions import reduce_sum_p
from bedrax.lax.symbolic_zeros import LazilyTyped, Zero, instantiate

_JVP: Final = "rule(primals, tangents, **params) -> (result, its tangent)"
_TRANSPOSE: Final = "rule(ct, *operands, **params) -> [cotangent or None per operand]"
jvp_rules: Final = Column(
    "jvp",
    "bedrax.autodiff.rules",
    signature=_JVP,
    purpose="derivatives (jvp, grad, vjp)",
    interface=("jax.interpreters.ad", "ad.primitive_jvps[primitive] = rule", _JVP),
)
transpose_rules: Final = Column(
    "transpose",
    "bedrax.autodiff.rules",
    signature=_TRANSPOSE,
    purpose="transposition (grad, vjp, linear_transpose)",
    interface=("jax.interpreters.ad", "ad.primitive_transposes[primitive] = rule", _TRANSPOSE),
)


def _by_jvp(prim):
    if jvp_rules.find(prim) is None:
        return None
    return lambda primals, tangents, **params: jvp_rules[prim](primals, tangents, **params)


# Linearize rules. A primitive without one is linearized by its jvp rule; one that holds programs splits them.
linearize_rules: Final = Column(
    "linearize",
    "bedrax.autodiff.rules",
    signature="rule(primals, tangents, **params) -> (out, tangent)",
    otherwise=_by_jvp,
    otherwise_kind="jvp",
)


class UndefinedPrimal(LazilyTyped):
    """Marks, for transpose rules, an argument that the operation is linear in.

    Examples:

      >>> from jax.interpreters import ad

      >>> unknown = ad.UndefinedPrimal(jax.typeof(jnp.ones(2)))
      >>> transpose = ad.get_primitive_transpose(lax.mul_p)
      >>> unknown, transpose(jnp.array([1., 2.]), unknown, jnp.array([3., 4.]))
      (UndefinedPrimal(f32[2]), [Array([3., 8.], dtype=float32), None])
    """

    __slots__ = ()

    @property
    def aval(self) -> AbstractValue:
        found = self._aval
        if found is None:
            found = self._aval = aval_of(self._of)
            self._of = None
        return found


def is_undefined(x: Any) -> bool:
    """Whether a transpose rule's argument is one that the operation is linear in.

    Examples:

      >>> from jax.experimental import hijax

      >>> from jax.interpreters import ad
      >>> scale_p = jax.extend.core.Primitive("scale_by_known")
      >>> _ = scale_p.def_abstract_eval(lambda x, factor: x)
      >>> def transpose(ct, x, factor):
      ...     print("unknown:", hijax.is_undefined_primal(x), hijax.is_undefined_primal(factor))
      ...     return [ct * factor, None]
      ...
      >>> ad.primitive_transposes[scale_p] = transpose
      >>> jax.linear_transpose(lambda x: scale_p.bind(x, 3.), 1.)(2.)
      unknown: True False
      (Array(6., dtype=float32, ...),)

      >>> from jax.extend.core import Primitive

      >>> weigh_p = Primitive("weigh")
      >>> _ = weigh_p.def_abstract_eval(lambda x, weight: x)
      >>> def transpose(ct, x, weight):
      ...     print("unknown:", ad.is_undefined_primal(x), ad.is_undefined_primal(weight))
      ...     return [ct * weight, None]
      ...
      >>> ad.primitive_transposes[weigh_p] = transpose
      >>> jax.linear_transpose(lambda x: weigh_p.bind(x, 3.), 1.)(2.)
      unknown: True False
      (Array(6., dtype=float32, ...),)
    """
    return type(x) is UndefinedPrimal


def has_tangent(dtype: Any) -> bool:
    """Whether values of a dtype have nonzero tangents: inexact ones, and extended ones that name a tangent dtype."""
    return dtypes.is_inexact(dtype) or hasattr(dtype, "tangent_dtype")


def differentiable(aval: AbstractValue) -> bool:
    """Whether values of a type have nonzero tangents."""
    if aval.represented:
        tangent = aval.to_tangent_aval()
        return not tangent.is_array or has_tangent(tangent.dtype)
    return (aval.is_array or aval.mutable) and has_tangent(aval.dtype)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents (or cotangents) of one type.

    Args:
      x, y: arrays of one shape and dtype, or `Zero`. The sum of `Zero` and a tangent is the tangent.

    Examples:

      >>> from jax.interpreters import ad

      >>> zero = ad.Zero(jax.typeof(jnp.ones(2)))
      >>> ad.add_tangents(zero, jnp.array([1., 2.])), ad.add_tangents(zero, zero)
      (Array([1., 2.], dtype=float32), Zero(f32[2]))
    """
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    aval = aval_of(x)
    if aval.is_high:
        return aval.vspace_add(x, y)
    dtype = aval.dtype
    sum_of = (
        None if isinstance(dtype, np.dtype) else getattr(dtype, "sum_of", None)
    )  # an extended dtype may have its own
    return add_jaxvals_p.bind(x, y) if sum_of is None else sum_of(x, y)


def unbroadcast(aval: AbstractValue, ct: Any) -> Any:
    """Sum a cotangent down to an operand of rank 0 that was broadcast against ranked ones."""
    if type(ct) is Zero:
        return Zero(aval)
    if aval.shape:  # then it has the shape of the result
        return ct
    shape = aval_of(ct).shape
    if not shape:
        return ct
    return reduce_sum_p.bind(ct, axes=tuple(range(len(shape))))


def flags(tangents: Iterable[Any]) -> tuple[bool, ...]:
    """One boolean per tangent: whether it is not known to vanish."""
    return tuple([type(t) is not Zero for t in tangents])


def live(tangents: Iterable[Any]) -> list[Any]:
    """The tangents that are not known to vanish."""
    return [t for t in tangents if type(t) is not Zero]


def spread(values: Iterable[Any], active: Iterable[bool], outs: Iterable[Any]) -> list[Any]:
    """Tangents of all values `outs`, given those of the active ones."""
    rest = iter(values)
    return [next(rest) if a else Zero.of(x) for a, x in zip(active, outs, strict=True)]


def no_tangent(prim: Primitive, ans: Any) -> Any:
    """The zero tangent, or tangents, of a primitive's result."""
    return [Zero.of(x) for x in ans] if prim.multiple_results else Zero.of(ans)


# ---- rows


def jvp(prim: Primitive, *formulas: Callable[..., Any] | None, transpose: Callable[..., Any] | None = None) -> None:
    """A row with one formula ``(t, ans, *primals, **params) -> tangent`` per operand.

    Args:
      transpose: for a primitive that is linear in some operands; without it, it has no transpose.
    """

    def rule(primals, tangents, **params):
        ans = prim.bind(*primals, **params)
        total = None
        for formula, t in zip(formulas, tangents, strict=True):
            if formula is not None and type(t) is not Zero:
                term = formula(t, ans, *primals, **params)
                total = term if total is None else add_tangents(total, term)
        return ans, no_tangent(prim, ans) if total is None else total

    jvp_rules.add(prim, rule, "formula")
    if transpose is None:
        not_transposable(prim)
    else:
        transpose_rules.add(prim, transpose)


def linear(prim: Primitive, transpose: Callable[..., Any] | None = None, kind: str = "linear") -> None:
    """A row for a primitive that is linear in all its operands together."""

    def rule(primals, tangents, **params):
        ans = prim.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return ans, no_tangent(prim, ans)
        return ans, prim.bind(*map(instantiate, tangents), **params)

    jvp_rules.add(prim, rule, kind)
    if transpose is not None:
        transpose_rules.add(prim, transpose, kind)


def bilinear(prim: Primitive, lhs_transpose: Callable[..., Any], rhs_transpose: Callable[..., Any]) -> None:
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
        first = type(x) is UndefinedPrimal
        if first and type(y) is UndefinedPrimal:
            raise ValueError(f"'{prim}' is not linear in both operands together")
        rule, undefined, other = (lhs_transpose, x, y) if first else (rhs_transpose, y, x)
        if avals.any_split and prim.family != "elementwise" and (is_split(ct) or is_split(other)):
            # Types have shardings: that of the cotangent is that of its primal, not that of the contraction.
            where = cotangent_type(undefined.aval).split or anywhere
            back = placed_result(where, _by_values(rule, first, undefined.aval), ct, other, **params)
        else:
            back = rule(ct, x, y, **params)
        return [back, None] if first else [None, back]

    jvp_rules.add(prim, jvp_rule, "bilinear")
    transpose_rules.add(prim, transpose_rule, "bilinear")


@functools.lru_cache(1024)
def _by_values(rule: Callable, first: bool, aval: AbstractValue) -> Callable:
    """A transpose rule as a function of the cotangent and the other operand."""

    def fun(ct, other, **params):
        undefined = UndefinedPrimal(aval)
        return rule(ct, *((undefined, other) if first else (other, undefined)), **params)

    return fun


def zero(*prims: Primitive) -> None:
    """Rows for primitives whose derivative vanishes wherever it exists."""
    for prim in prims:

        def rule(primals, tangents, *, prim=prim, **params):
            ans = prim.bind(*primals, **params)
            return ans, no_tangent(prim, ans)

        jvp_rules.add(prim, rule, "zero")
        transpose_rules.absent(prim, why="its derivative is zero: nothing linear is left to transpose")


def absent(*prims: Primitive, why: str) -> None:
    """Rows that state why a primitive has no derivative."""
    jvp_rules.absent(*prims, why=why)
    transpose_rules.absent(*prims, why=why)


def not_transposable(*prims: Primitive, why: str = "it is not linear; its jvp is made of operations that are") -> None:
    """Rows that state why a primitive with a jvp has no transpose."""
    transpose_rules.absent(*prims, why=why)
