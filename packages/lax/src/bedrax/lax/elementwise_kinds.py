"""Common parts of elementwise primitives: accepted dtypes, shape rules, constants, broadcasting of unit axes.

`unary` and `nary` make the primitives of the families `elementwise` and `special`; other families take the tables of
dtypes and the texts of errors from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike

REAL_OF = {np.dtype("complex64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("float64")}
COMPLEX_OF = {real: cplx for cplx, real in REAL_OF.items()}


# ---- dtypes that a primitive accepts -------------------------------------------------------------

_CATEGORIES = {
    "integer": np.integer,
    "signedinteger": np.signedinteger,
    "floating": np.floating,
    "complexfloating": np.complexfloating,
    "bool": np.bool_,
    "float32": np.float32,
    "float64": np.float64,
    "prng_key": dtypes.prng_key,
}

FLOAT = ("floating",)
INEXACT = ("floating", "complexfloating")
NUMBER = ("integer", "floating", "complexfloating")
REAL = ("integer", "floating")
SIGNED = ("floating", "complexfloating", "signedinteger")
INTEGER = ("integer",)
BITS = ("integer", "bool")
ORDERED = ("integer", "floating", "bool")
ANY = ("integer", "floating", "complexfloating", "bool")
COMPARABLE = (*ANY, "prng_key")
COMPLEX = ("complexfloating",)
COMPLEX_PART = ("float32", "float64")
CONJUGABLE = ("float32", "complexfloating", "float64")


class _Accepted(dict[np.dtype, bool]):
    """`dtype -> whether it is in one of the categories`, filled on demand."""

    def __init__(self, categories: tuple[str, ...]) -> None:
        super().__init__()
        self.categories = categories

    def __missing__(self, dtype: Any) -> bool:
        found = self[dtype] = any(dtypes.issubdtype(dtype, _CATEGORIES[name]) for name in self.categories)
        return found


_accepted: dict[tuple[str, ...], _Accepted] = {}


def accepted(categories: tuple[str, ...]) -> _Accepted:
    """The shared table of the dtypes in `categories`."""
    table = _accepted.get(categories)
    if table is None:
        table = _accepted[categories] = _Accepted(categories)
    return table


def result_shape(name: str, avals: tuple[ShapedArray, ...]) -> tuple[Any, ...]:
    """The common shape of the operands; rank 0 fits every shape.

    Raises:
      TypeError: ranks or lengths differ.
    """
    shapes = [aval.shape for aval in avals if aval.shape]
    if not shapes:
        return ()
    shape = shapes[0]
    for other in shapes[1:]:
        if other != shape:
            break
    else:
        return shape
    if len({len(s) for s in shapes}) > 1:
        # Rank 0 fits every shape, so only operands with axes can disagree.
        ranks = "{" + ", ".join(str(r) for r in sorted({len(s) for s in shapes})) + "}"
        raise TypeError(
            coded("BX-BROADCAST", f"{name}: operands have one rank or rank 0, got ranks {ranks}; jax.numpy adds axes")
        )
    listed = ", ".join(str(tuple(aval.shape)) for aval in avals)
    message = f"{name} got incompatible shapes for broadcasting: {listed}."
    for axis in zip(*shapes, strict=True):
        if len({d for d in axis if d != 1}) > 1:
            raise TypeError(coded("BX-BROADCAST", message))
    message += f" Axes of length 1 are broadcast by the function lax.{name}, not by its primitive"
    raise TypeError(coded("BX-BROADCAST", message))


# The functions that promote, for `lax.<name>`.
_PROMOTING = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "eq": "equal",
    "ne": "not_equal",
    "select": "where",
}


def dtype_mismatch(
    name: str, found: list[np.dtype[Any]] | tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]]
) -> TypeError:
    """The error for operands of different dtypes."""
    listed = ", ".join(str(getattr(d, "name", d)) for d in found)
    tip = f"; jnp.{_PROMOTING[name]} converts them" if name in _PROMOTING else ""
    return TypeError(coded("BX-DTYPES", f"lax.{name} takes operands of one dtype, got {listed}{tip}"))


def dtype_refused(name: str, dtype: Any, categories: tuple[str, ...], position: int | None = None) -> TypeError:
    """The error for an operand of a dtype that the primitive does not take."""
    where = "" if position is None else f" at position {position}"
    return TypeError(
        coded(
            "BX-DTYPE",
            f"{name} does not accept dtype {getattr(dtype, 'name', dtype)}{where}; it takes {', '.join(categories)}:"
            " convert the operand with x.astype",
        )
    )


def check_numbers(name: str, *avals: ShapedArray) -> None:
    """Check that the operands of a primitive that computes have numbers as elements, not keys.

    Raises:
      TypeError: one of them has an extended dtype.
    """
    for position, aval in enumerate(avals):
        if dtypes.is_extended(aval.dtype):
            raise dtype_refused(name, aval.dtype, ("integer", "floating", "complex", "bool"), position)


def joined(
    avals: tuple[ShapedArray, ...], shape: tuple[Any, ...], dtype: np.dtype[Any], weak_type: bool
) -> ShapedArray:
    """The aval of an elementwise result: placement from the operands that have the result's shape."""
    sharding = memory_space = None
    vma = avals[0].vma
    for aval in avals:
        if aval.vma != vma:
            vma = vma | aval.vma
        if aval.shape == shape:
            sharding = sharding or aval.split
            memory_space = memory_space or aval.memory_space
    return ShapedArray(shape, dtype, weak_type, sharding=sharding, memory_space=memory_space, vma=vma)


# ---- primitives by kind --------------------------------------------------------------------------


def unary(
    name: str, categories: tuple[str, ...] = ANY, result: Callable[..., Any] | None = None, family: str = "elementwise"
) -> Primitive:
    """A primitive of one operand; `result(dtype)` is the dtype of its result (default: the same)."""
    prim = Primitive(name, family)
    ok = accepted(categories)

    def shape_rule(x, **params):
        if not ok[x.dtype]:
            raise dtype_refused(name, x.dtype, categories)
        return x if result is None else x.update(dtype=result(x.dtype))

    prim.abstract(shape_rule)
    return prim


def nary(
    name: str, *categories: tuple[str, ...], result: Callable[..., Any] | None = None, family: str = "elementwise"
) -> Primitive:
    """A primitive of operands of equal dtype; `categories` holds one tuple per operand, or one for two operands."""
    prim = Primitive(name, family)
    if len(categories) == 1:
        categories = categories * 2
    ok = tuple(accepted(c) for c in categories)
    ok_x, ok_y = ok[:2]

    def shape_rule(x, y, *more):
        if not more and x.shape == y.shape and x.dtype == y.dtype and ok_x[x.dtype] and ok_y[y.dtype]:
            if x is y or (x.weak_type == y.weak_type and x.vma == y.vma and x.split == y.split):
                return x if result is None else x.update(dtype=result(x.dtype))
        avals = (x, y, *more)
        shape = result_shape(name, avals)
        for i, aval in enumerate(avals):
            if not ok[i][aval.dtype]:
                raise dtype_refused(name, aval.dtype, categories[i], i)
        dtype = x.dtype
        if any(aval.dtype != dtype for aval in avals):
            raise dtype_mismatch(name, [aval.dtype for aval in avals])
        weak = all(aval.weak_type for aval in avals)
        return joined(avals, shape, dtype if result is None else result(dtype), weak)

    prim.abstract(shape_rule)
    return prim


# ---- operands ------------------------------------------------------------------------------------


def scalar_like(x: ArrayLike, value: complex | float | int) -> Any:
    """`value` as a constant for operations with `x`: of its dtype, and weak exactly if `x` is.

    Rules use it, because elementwise primitives do not promote.
    """
    aval = aval_of(x)
    dtype = aval.dtype
    if aval.weak_type:
        kind = type(value)
        if dtypes.is_inexact(dtype) and kind is int:
            value, kind = float(value), float
        if dtype in REAL_OF:
            value, kind = complex(value), complex
        if dtypes.python_scalar_dtype(kind) == dtype:
            return value
    return dtype.type(value)
