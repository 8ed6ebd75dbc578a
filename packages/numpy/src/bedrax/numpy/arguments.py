"""Arguments of array functions as arrays: checked by name, and promoted on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import blame, dims, dtypes, errors, positions, tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_functions, aval_of
from bedrax.core.codes import coded
from bedrax.core.typing import ArrayLike
from bedrax.lax import promotion


def arrays(name: str, *xs: ArrayLike) -> list[Array]:
    """Each argument as an array of its own dtype. Errors name the function `name`."""
    return [lax.asarray(promotion.operand(name, x, i)) for i, x in enumerate(xs)]


def array(name: str, x: ArrayLike, position: int = 0) -> Array:
    """One argument as an array. Errors name the function `name` and the argument's `position`."""
    return lax.asarray(promotion.operand(name, x, position))


def promoted(name: str, *xs: ArrayLike) -> list[Array]:
    """The arguments as arrays of their common dtype, with unchanged shapes."""
    return [lax.asarray(x) for x in promotion.promote_dtypes(name, xs)]


def inexact(name: str, *xs: ArrayLike) -> list[Array]:
    """Like `promoted`, with integers and booleans converted to floats."""
    return [lax.asarray(x) for x in promotion.promote_dtypes(name, xs, True)]


def aligned(x: Any, like: Any) -> Any:
    """`x` with leading axes of size 1, so that its rank is at least that of `like`.

    Broadcasting the two promotes no rank then. The user's option may forbid such promotions.
    """
    more = like.ndim - x.ndim
    if more <= 0:
        return x
    return x.reshape((1,) * more + x.shape) if isinstance(x, np.ndarray) else lax.expand_dims(x, range(more))


def axis_index(axis: Any, ndim: int) -> int:
    """A possibly negative axis as a number in ``range(ndim)``.

    Raises:
      numpy.exceptions.AxisError: it is out of bounds (a ValueError, and an IndexError).
      ConcretizationTypeError: it is traced.
    """
    if isinstance(axis, tracing.Tracer) and axis.concrete() is None:
        raise errors.ConcretizationTypeError(axis, "It is given as an axis, which is part of the program.")
    axis = dims.integer(axis, "axis")
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(
            coded("BX-AXIS-RANGE", f"axis {axis} is out of bounds for array of dimension {ndim}")
        )
    return axis % ndim


def axes_tuple(axis: Any, ndim: int) -> tuple[int, ...]:
    """None (all), one axis or a sequence of them, as distinct axes in ``range(ndim)``."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis_index(a, ndim) for a in (axis if isinstance(axis, Sequence) else (axis,)))
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in axes {axis}")
    return axes


def refuse_out(name: str, out: Any) -> None:
    """Raise if the argument `out` is given: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"jnp.{name}: out is not supported, as arrays are immutable; use what is returned")


def counting(x: Any, *sizes: Any) -> Any:
    """Return integers in a dtype that holds each of the sizes: their own dtype, or else the dtype of positions.

    In a narrower dtype, a size that is added to them would wrap around.
    """
    index = positions.dtype_for(*sizes)
    greatest = dtypes.iinfo(x.dtype).max
    if all(type(n) is int and n <= greatest for n in sizes) or x.dtype.itemsize >= index.itemsize:
        return x
    return lax.convert_to(x, index, False)


def concrete_int(x: Any, what: str) -> int:
    """A count that determines a shape, as an int.

    Raises:
      ConcretizationTypeError: it is traced; `what` is the advice in the message.
    """
    if isinstance(x, tracing.Tracer) and x.concrete() is None:
        raise errors.ConcretizationTypeError(x, what)
    return int(x)


def is_complex(x: Any) -> bool:
    """Whether the elements of an array are complex."""
    return dtypes.is_complex(x.dtype)


def as_bool(x: Any) -> Any:
    """Whether elements are not zero."""
    aval = aval_of(x)
    if aval.dtype == dtypes.bool_dtype:
        return x
    return lax.ne(x, zero_like(aval))


def mask_of(name: str, where: Any) -> Any:
    """The operand `where` of a reduction.

    Raises:
      ValueError: it has another dtype than bool. Numbers would be weights in one reading, and booleans in another.
    """
    mask = promotion.operand(name, where)
    dtype = aval_of(mask).dtype
    if dtype != np.bool_:
        raise ValueError(
            f"{name}: where is None or an array of booleans, got {dtype.name}; compare, as in where=w != 0"
        )
    return mask


def zero_like(aval: Any) -> Any:
    """The scalar 0 of the dtype and weak type of `aval`. An operation of a value with it keeps the value's type."""
    zero = np.zeros((), aval.dtype)[()]
    return zero.item() if aval.weak_type else zero


def typed(name: str, position: int, x: ArrayLike) -> tuple[Any, Any]:
    """``(x, type of x)``. Raises the error of function `name` if `x` is not an array or scalar."""
    known = aval_functions.get(type(x))
    if known is not None:
        return x, known(x)
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    try:
        return x, aval_of(x)
    except TypeError:
        raise blame.not_an_array(x, name, position) from None
