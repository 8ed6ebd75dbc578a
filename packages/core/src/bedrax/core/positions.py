"""Dtypes of positions along an axis: int32, or int64 if the axis has more elements than int32 can count.

Without x64, arrays of users have no int64. Positions that a function computes and does not return are int64 all the
same: it enters `scope`. A function that returns positions calls `result_dtype`, which refuses such axes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bedrax.core import config, dtypes
from bedrax.core.public import public
from bedrax.core.typing import P, R

LIMIT: Final = 2**31 - 1  # the greatest int32
_NARROW: Final = contextlib.nullcontext()
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def are_wide(*sizes: Any) -> bool:
    """Return whether an axis of one of these sizes has positions beyond int32. Symbolic sizes have none."""
    for n in sizes:
        if type(n) is int and n > LIMIT:
            return True
    return False


def dtype_for(*sizes: Any) -> np.dtype:
    """Return the dtype that counts along axes of these sizes."""
    return _INT64 if are_wide(*sizes) else _INT32


def scope(*sizes: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which `dtype_for(*sizes)` is a dtype of arrays."""
    return config.enable_x64(True) if are_wide(*sizes) else _NARROW


def wide(fun: Callable[P, R]) -> Callable[P, R]:
    """Decorator: calls are made in the `scope` of the axes of the first argument.

    For functions whose other arguments are positions, and whose results have the dtype of that argument.
    """

    @functools.wraps(fun)
    def function(*args: P.args, **kwargs: P.kwargs) -> R:
        operand = args[0] if args else next(iter(kwargs.values()), None)
        shape = getattr(operand, "shape", ())
        if type(shape) is tuple:
            for n in shape:
                if type(n) is int and n > LIMIT:
                    with config.enable_x64(True):
                        return fun(*args, **kwargs)
        return fun(*args, **kwargs)

    return function


def result_dtype(name: str, size: Any, dtype: Any = None) -> np.dtype:
    """Return the dtype in which a function returns positions or counts up to `size`: `dtype`, or the default integer.

    Raises:
      OverflowError: the dtype cannot hold them.
    """
    dtype = dtypes.default_int_dtype() if dtype is None else dtype
    check(name, size, dtype)
    return dtype


def check(name: str, size: Any, dtype: Any) -> None:
    """Raise OverflowError if positions along `size` elements are beyond an integer dtype."""
    if type(size) is not int:
        return
    greatest = LIMIT if dtype == _INT32 else dtypes.iinfo(dtype).max
    if size - 1 > greatest:
        raise OverflowError(
            public(
                f"{name}: positions among {size} elements are beyond {np.dtype(dtype).name}, which counts to"
                f" {greatest}. Turn on jax_enable_x64, for instance by `with jax.enable_x64(True):`, or pass a wider"
                " integer dtype to a function that takes one"
            )
        )
