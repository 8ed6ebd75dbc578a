"""Reductions that leave out nan: `nansum`, `nanmean`, `nanmax`..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, Axis, DTypeLike
from bedrax.lax.promotion import broadcast_to
from bedrax.numpy import cumulative, reductions
from bedrax.numpy.arguments import array, mask_of, refuse_out
from bedrax.numpy.number_queries import isnan
from bedrax.numpy.selection import choose_where as choose
from bedrax.numpy.ufuncs import logical_and, logical_not


def _without_nan(x: Array, value: Any) -> Array:
    """`x` with nan replaced. An infinite `value` is the outermost number of a dtype without infinities."""
    if not dtypes.is_inexact(x.dtype):
        return x
    if np.isinf(value) and not np.isinf(np.asarray(value).astype(x.dtype)):
        limits = dtypes.finfo(x.dtype)
        value = limits.max if value > 0 else limits.min
    return choose(isnan(x), np.asarray(value).astype(x.dtype)[()], x)


def _fold(name: str, what: str, plain: Callable, neutral: int, example: str) -> Callable[..., Array]:
    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        return plain(_without_nan(array(name, a), neutral), axis, dtype, out, keepdims, initial, where)

    named(function, name, __name__, f"The {what} of the elements that are not nan; arguments as in `sum`.", example)
    return one_program(function, static=("axis", "dtype", "out", "keepdims"), arrays=("initial", "where"))


nansum: Final = _fold(
    "nansum",
    "sum",
    reductions.sum,
    0,
    example="""
    >>> jnp.nansum(jnp.array([2., jnp.nan, 3.]))
    Array(5., dtype=float32)
    """,
)
nanprod: Final = _fold(
    "nanprod",
    "product",
    reductions.prod,
    1,
    example="""
    >>> jnp.nanprod(jnp.array([2., jnp.nan, 3.]))
    Array(6., dtype=float32)
    """,
)


def _extreme(name: str, what: str, reduce: Callable, worst: float, example: str) -> Callable[..., Array]:
    def function(
        a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Array:
        x = array(name, a)
        found = reduce(_without_nan(x, worst), axis, out, keepdims, initial, where)
        if initial is not None or not dtypes.is_inexact(x.dtype):
            return found
        nothing = reductions.all(isnan(x), axis, keepdims=keepdims)
        return choose(nothing, np.asarray(np.nan).astype(x.dtype)[()], found)

    text = f"The {what} element that is not nan; nan where there is none. Arguments as in `max`."
    named(function, name, __name__, text, example)
    return one_program(function, static=("axis", "out", "keepdims"), arrays=("initial", "where"))


nanmax: Final = _extreme(
    "nanmax",
    "largest",
    reductions.max,
    -np.inf,
    example="""
    >>> jnp.nanmax(jnp.array([[1., jnp.nan], [3., 4.]]), axis=0)
    Array([3., 4.], dtype=float32)
    """,
)
nanmin: Final = _extreme(
    "nanmin",
    "smallest",
    reductions.min,
    np.inf,
    example="""
    >>> jnp.nanmin(jnp.array([[1., jnp.nan], [3., 4.]]), axis=0)
    Array([1., 4.], dtype=float32)
    """,
)


def _position(name: str, what: str, find: Callable, worst: float, example: str) -> Callable[..., Array]:
    def function(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        refuse_out(name, out)
        x = array(name, a)
        found = find(_without_nan(x, worst), axis, None, keepdims)
        if not dtypes.is_inexact(x.dtype):
            return found
        return choose(reductions.all(isnan(x), axis, keepdims=bool(keepdims)), -1, found)

    text = f"""The index of the {what} element that is not nan; -1 where there is none.

    Args:
      a: array.
      axis: the axis, or None to flatten.
      out: must be None.
      keepdims: keep the axis (or all) with length 1.

    Raises:
      ValueError: the axis has no element.
    """
    named(function, name, __name__, text, example)
    return one_program(function, static=("axis", "out", "keepdims"))


nanargmax: Final = _position(
    "nanargmax",
    "largest",
    reductions.argmax,
    -np.inf,
    example="""
    >>> jnp.nanargmax(jnp.array([1., jnp.nan, 3.]))
    Array(2, dtype=int32)
    """,
)
nanargmin: Final = _position(
    "nanargmin",
    "smallest",
    reductions.argmin,
    np.inf,
    example="""
    >>> jnp.nanargmin(jnp.array([1., jnp.nan, 3.]))
    Array(0, dtype=int32)
    """,
)


def _cumulative(name: str, plain: Callable, neutral: int, example: str) -> Callable[..., Array]:
    def function(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        return plain(_without_nan(array(name, a), neutral), axis, dtype, out)

    text = f"`{name[3:]}` with nan as {neutral}; arguments as in `{name[3:]}`."
    named(function, name, __name__, text, example)
    return one_program(function, static=("axis", "dtype", "out"))


nancumsum: Final = _cumulative(
    "nancumsum",
    cumulative.cumsum,
    0,
    example="""
    >>> jnp.nancumsum(jnp.array([2., jnp.nan, 3.]))
    Array([2., 2., 5.], dtype=float32)
    """,
)
nancumprod: Final = _cumulative(
    "nancumprod",
    cumulative.cumprod,
    1,
    example="""
    >>> jnp.nancumprod(jnp.array([2., jnp.nan, 3.]))
    Array([2., 2., 6.], dtype=float32)
    """,
)


def _counted(x: Array, where: Any) -> Array:
    """Booleans, true for the elements that count: those that are not nan and chosen by `where`."""
    valid = logical_not(isnan(x))
    return valid if where is None else logical_and(valid, broadcast_to(mask_of("nanmean", where), x.shape))


@one_program(static=("axis", "dtype", "out", "keepdims"), arrays=("where",))
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements that are not nan; nan if there are none. Arguments as in `mean`.

    Examples:

      >>> jnp.nanmean(jnp.array([1., jnp.nan, 3.]))
      Array(2., dtype=float32)
    """
    refuse_out("nanmean", out)
    x = array("nanmean", a)
    if not dtypes.is_inexact(x.dtype):
        return reductions.mean(x, axis, dtype, out, keepdims, where=where)
    return reductions.mean(x, axis, dtype, None, keepdims, where=_counted(x, where))


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims"), arrays=("where", "mean"))
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of the elements that are not nan; nan if there are too few. Arguments as in `var`.

    Examples:

      >>> jnp.nanvar(jnp.array([1., jnp.nan, 3.]))
      Array(1., dtype=float32)
    """
    refuse_out("nanvar", out)
    reductions.check_variance_dtype("nanvar", dtype)
    x = array("nanvar", a)
    if not dtypes.is_inexact(x.dtype):
        return reductions.var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    return reductions.var(_without_nan(x, 0), axis, dtype, None, ddof, keepdims, where=_counted(x, where), mean=mean)


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims"), arrays=("where", "mean"))
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The square root of `nanvar`, the standard deviation of the elements that are not nan.

    Args:
      a: array of numbers; the result is real.
      axis, dtype, out, ddof, keepdims, where, mean: as in `var`.

    Examples:

      >>> jnp.nanstd(jnp.array([1., jnp.nan, 3.]))
      Array(1., dtype=float32)
    """
    reductions.check_variance_dtype("nanstd", dtype)
    return lax.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))
