"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.lax.primitives import cumulative as cumulate
from bedrax.lax.promotion import operand
from bedrax.numpy.arguments import array, axis_index, refuse_out
from bedrax.numpy.reductions import wide_integer


def _cumulative(name: str, what: str, function: Callable, example: str) -> Callable[..., Array]:
    def cumulative(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        refuse_out(name, out)
        x = operand(name, a)
        aval = aval_of(x)
        if axis is None or not aval.shape:
            if axis not in (None, 0, -1):
                axis_index(axis, len(aval.shape))
            x = lax.reshape(x, (dims.size(aval.shape),))
            axis = 0
        axis = axis_index(axis, len(aval_of(x).shape))
        if dtype is not None:
            target = dtypes.explicit_dtype(dtype, name)
        else:
            target = dtypes.default_int_dtype() if aval.dtype == np.bool_ else aval.dtype
        if target == np.bool_:
            x = lax.convert_to(x, np.dtype(np.int32), False)
            return lax.convert_to(function(x, axis), target, False)
        return function(lax.convert_to(x, target, False), axis)

    text = f"""The {what} of the elements up to each position along an axis.

    Args:
      a: array of numbers.
      axis: the axis, or None to flatten.
      dtype: in which to compute; default: that of `a`, integers for bools.
      out: must be None.
    """
    return one_program(named(cumulative, name, __name__, text, example), static=("axis", "dtype", "out"))


cumsum: Final = _cumulative(
    "cumsum",
    "sums",
    cumulate.cumsum,
    example="""
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.cumsum(x)
    Array([ 1,  3,  6, 10], dtype=int32)
    >>> jnp.cumsum(x, axis=1)
    Array([[1, 3],
           [3, 7]], dtype=int32)
    """,
)
cumprod: Final = _cumulative(
    "cumprod",
    "products",
    cumulate.cumprod,
    example="""
    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """,
)


def _along_axis(name: str, function: Callable, start: int, example: str) -> Callable[..., Array]:
    def cumulative(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
        x = array(name, x)
        if not x.ndim:
            raise ValueError(f"{name} needs an array with an axis, got a scalar")
        if axis is None:
            if x.ndim > 1:
                raise ValueError(f"{name} needs axis for an array of rank {x.ndim}; it may be left out for rank 1")
            axis = 0
        axis = axis_index(axis, x.ndim)
        if dtype is None and function is cumsum and dtypes.is_integer(x.dtype):
            dtype = wide_integer(x.dtype)
        out = function(x, axis, dtype)
        if include_initial:
            shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
            out = lax.concatenate([lax.full(shape, start, out.dtype), out], axis)
        return out

    text = f"""`{function.__name__}` along an axis that must be given unless `x` has rank 1{"; narrow integers become wide" if function is cumsum else ""}.

    Args:
      x: array of rank 1 at least.
      axis: the axis.
      dtype: in which to compute.
      include_initial: put the empty result, {start}, in front.
    """
    return one_program(named(cumulative, name, __name__, text, example), static=("axis", "dtype", "include_initial"))


cumulative_sum: Final = _along_axis(
    "cumulative_sum",
    cumsum,
    0,
    example="""
    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """,
)
cumulative_prod: Final = _along_axis(
    "cumulative_prod",
    cumprod,
    1,
    example="""
    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """,
)
