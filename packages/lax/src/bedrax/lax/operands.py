"""Operands of n-ary functions: axes of length 1 are broadcast before a primitive is bound."""

from __future__ import annotations

from typing import Any

from bedrax.core import tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.tracing import Primitive, cast_together, current
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.shaping import broadcast_in_dim


def bind_nary(prim: Primitive, *args: ArrayLike, **params: Any) -> Array:
    """Bind an n-ary primitive, after the operands' axes of length 1 are broadcast against longer ones."""
    shape = None
    for x in args:
        own = getattr(x, "shape", ())
        if own and own is not shape and own != shape:
            if shape is not None:
                args = _broadcast(args)
                break
            shape = own
    return (
        prim.bind(*args, **params) if tracing.varies and current.varying else current.trace.process(prim, args, params)
    )


def bind_pair(prim: Primitive, x: Any, y: Any) -> Any:
    """`bind_nary` of two operands and no params, the most frequent case."""
    s = getattr(x, "shape", None)
    if s:
        t = getattr(y, "shape", None)
        if t and s is not t and s != t:
            x, y = _broadcast((x, y))
    return prim.bind(x, y) if tracing.varies and current.varying else current.trace.process(prim, (x, y), {})


def _broadcast(args: tuple) -> tuple:
    """Operands of the common shape. Unchanged if there is none; then the primitive's shape rule raises."""
    shapes = [aval_of(x).shape for x in args]
    ranked = [s for s in shapes if s]
    if len({len(s) for s in ranked}) > 1:
        return args
    shape = tuple(next((d for d in axis if d != 1), 1) for axis in zip(*ranked, strict=True))
    if any(d != 1 and d != n for s in ranked for d, n in zip(s, shape, strict=True)):
        return args
    where = tuple(range(len(shape)))
    args = cast_together(args)
    return tuple(
        broadcast_in_dim(x, shape, where) if s and s != shape else x for x, s in zip(args, shapes, strict=True)
    )


# Parameters that libraries pass for a placement, which they leave open with None.
_PLACEMENTS = ("sharding", "out_sharding")
# Parameters that libraries leave out -> their values.
_ABSENT = {"svd": {"algorithm": None}}


def as_rules_take(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, Any] | None:
    """The operands and params for the rules, of a call of `bind` that the rules refused; None if they are the same.

    Libraries pass ``sharding=None``, leave some params out, and let elementwise primitives broadcast axes of length 1.
    """
    kept = {k: v for k, v in params.items() if k not in _PLACEMENTS or v is not None}
    kept = _ABSENT.get(prim.name, {}) | kept
    fitting = args
    if prim.family == "elementwise" and len(args) > 1 and prim.name not in ("select_n", "clamp"):
        fitting = _broadcast(args)
    if kept == params and all(x is y for x, y in zip(args, fitting, strict=True)):
        return None
    return fitting, kept
