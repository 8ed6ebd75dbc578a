"""Reductions that leave out nan: `nansum`, `nanmean`, `nanmax`..."""

from __future__ import annotations

from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.lax.promotion import broadcast_to
from bedrax.numpy import cumulative, reductions
from bedrax.numpy.arguments import array, as_bool, refuse_out
from bedrax.numpy.number_queries import isnan
from bedrax.numpy.selection import choose_where as choose
from bedrax.numpy.ufuncs import logical_and, logical_not

Axis = Any


def _without_nan(x: Array, value: Any) -> Array:
    """`x` with nan replaced."""
    if not dtypes.is_inexact(x.dtype):
        return x
    return choose(isnan(x), np.asarray(value).astype(x.dtype)[()], x)


@one_program(static=("axis", "dtype", "out", "keepdims"), arrays=("initial", "where"))
def nansum(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """The sum of the elements that are not nan; arguments as in `sum`."""
    x = _without_nan(array("nansum", a), 0)
    return reductions.sum(x, axis, dtype, out, keepdims, initial, where)


@one_program(static=("axis", "dtype", "out", "keepdims"), arrays=("initial", "where"))
def nanprod(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """The product of the elements that are not nan; arguments as in `sum`."""
    x = _without_nan(array("nanprod", a), 1)
    return reductions.prod(x, axis, dtype, out, keepdims, initial, where)


def _extreme(name: str, reduce, worst: float, a, axis, out, keepdims, initial, where) -> Array:
    x = array(name, a)
    found = reduce(_without_nan(x, worst), axis, out, keepdims, initial, where)
    if initial is not None or not dtypes.is_inexact(x.dtype):
        return found
    nothing = reductions.all(isnan(x), axis, keepdims=keepdims)
    return choose(nothing, np.asarray(np.nan).astype(x.dtype)[()], found)


@one_program(static=("axis", "out", "keepdims"), arrays=("initial", "where"))
def nanmax(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The largest element that is not nan; nan where there is none. Arguments as in `max`."""
    return _extreme("nanmax", reductions.max, -np.inf, a, axis, out, keepdims, initial, where)


@one_program(static=("axis", "out", "keepdims"), arrays=("initial", "where"))
def nanmin(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The smallest element that is not nan; nan where there is none. Arguments as in `max`."""
    return _extreme("nanmin", reductions.min, np.inf, a, axis, out, keepdims, initial, where)


def _position(name: str, find, worst: float, a, axis, out, keepdims) -> Array:
    refuse_out(name, out)
    x = array(name, a)
    found = find(_without_nan(x, worst), axis, None, keepdims)
    if not dtypes.is_inexact(x.dtype):
        return found
    return choose(reductions.all(isnan(x), axis, keepdims=bool(keepdims)), -1, found)


@one_program(static=("axis", "out", "keepdims"))
def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the largest element that is not nan; -1 where there is none."""
    return _position("nanargmax", reductions.argmax, -np.inf, a, axis, out, keepdims)


@one_program(static=("axis", "out", "keepdims"))
def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the smallest element that is not nan; -1 where there is none."""
    return _position("nanargmin", reductions.argmin, np.inf, a, axis, out, keepdims)


@one_program(static=("axis", "dtype", "out"))
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """`cumsum` with nan as 0."""
    return cumulative.cumsum(_without_nan(array("nancumsum", a), 0), axis, dtype, out)


@one_program(static=("axis", "dtype", "out"))
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """`cumprod` with nan as 1."""
    return cumulative.cumprod(_without_nan(array("nancumprod", a), 1), axis, dtype, out)


def _counted(x: Array, where: Any) -> Array:
    """Which elements count: those that are not nan and chosen by `where`."""
    valid = logical_not(isnan(x))
    return valid if where is None else logical_and(valid, broadcast_to(as_bool(array("nanmean", where)), x.shape))


@one_program(static=("axis", "dtype", "out", "keepdims"), arrays=("where",))
def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Array:
    """The mean of the elements that are not nan; nan where there is none. Arguments as in `mean`."""
    refuse_out("nanmean", out)
    x = array("nanmean", a)
    if not dtypes.is_inexact(x.dtype):
        return reductions.mean(x, axis, dtype, out, keepdims, where=where)
    return reductions.mean(x, axis, dtype, None, keepdims, where=_counted(x, where))


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims"), arrays=("where", "mean"))
def nanvar(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Array:  # fmt: skip
    """The variance of the elements that are not nan; nan where there are too few. Arguments as in `var`."""
    refuse_out("nanvar", out)
    x = array("nanvar", a)
    if not dtypes.is_inexact(x.dtype):
        return reductions.var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    return reductions.var(_without_nan(x, 0), axis, dtype, None, ddof, keepdims, where=_counted(x, where), mean=mean)


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims"), arrays=("where", "mean"))
def nanstd(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None,
) -> Array:  # fmt: skip
    """The square root of `nanvar`."""
    return lax.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))
