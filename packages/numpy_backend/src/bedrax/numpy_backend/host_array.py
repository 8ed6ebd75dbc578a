"""`HostArray`: an array that NumPy holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import avals, dtypes, errors, offers, tracing
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray


class HostArray(Array):
    """An array evaluated by NumPy: an immutable `numpy.ndarray` and the weakness of its dtype.

    Args:
      value: the elements. No other code may write to them (see `owned`). They become read-only when a view is returned.
      weak_type: whether the dtype is weak.
      aval: the type, if it is known already.
    """

    __slots__ = ("_value", "_weak", "aval")
    host_memory = True

    def __init__(self, value: np.ndarray, weak_type: bool = False, aval: avals.ShapedArray | None = None) -> None:
        self._value = value
        self._weak = weak_type
        self.aval: ShapedArray = avals.plain_aval(value.shape, value.dtype, weak_type) if aval is None else aval

    if not TYPE_CHECKING:
        ndim = property(attrgetter("_value.ndim"))

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: Any = None) -> np.ndarray[Any, Any]:
        view = frozen(self._value).view()  # the memory is read-only, so the view cannot become writable
        return view if dtype is None and not copy else np.array(view, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __complex__(self) -> complex:
        return complex(self._value)

    def __index__(self) -> int:
        if self._value.ndim or not dtypes.is_integer(self._value.dtype):
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self._value)

    def __iter__(self) -> Iterator[Any]:
        if not self._value.ndim:
            raise TypeError("iteration over a 0-d array")
        return (HostArray(np.asarray(row), self._weak) for row in self._value)

    def item(self, *args: int) -> float:
        """Return the element (at `args`) as a Python scalar."""
        return self._value.item(*args)

    def tolist(self) -> list[Any]:
        """Return nested lists of Python scalars."""
        return self._value.tolist()

    def block_until_ready(self) -> Any:
        """Return `self`: NumPy has computed the elements already."""
        return self

    def __repr__(self) -> str:
        text = np.array2string(self._value, separator=", ", prefix="Array(", threshold=1000)
        weak = ", weak_type=True" if self._weak else ""
        return f"Array({text}, dtype={self._value.dtype.name}{weak})"

    _repr_html_ = offers.shown("array")

    def __str__(self) -> str:
        return str(self._value)

    def __format__(self, spec: str) -> str:
        return format(self._value.item() if not self._value.ndim else self._value, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return HostArray, (self._value, self._weak)

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return HostArray(self._value.copy(), self._weak)


def frozen(x: np.ndarray) -> np.ndarray:
    """Make `x` and its base read-only; returns `x`."""
    part: Any = x
    while isinstance(part, np.ndarray) and part.flags.writeable:
        part.setflags(write=False)
        part = part.base
    return x


def is_frozen(x: np.ndarray) -> bool:
    """Return whether the memory of `x` is read-only, as far as NumPy knows."""
    while isinstance(x, np.ndarray) and not x.flags.writeable:
        x = x.base
    return x is None


def owned(x: np.ndarray) -> np.ndarray:
    """Return `x`, or a copy if its memory is writable."""
    return x if is_frozen(x) else x.copy()


def apart(result: np.ndarray, operands: Sequence[Any]) -> np.ndarray:
    """Return `result`, or a copy if it shares memory with a writable operand."""
    for x in operands:
        if isinstance(x, np.ndarray) and np.may_share_memory(result, x) and not is_frozen(x):
            return result.copy()
    return result


def to_numpy(x: Any) -> tuple[np.ndarray, bool]:
    """Return a concrete value as (ndarray of canonical dtype, whether it is weakly typed).

    Raises:
      UnexpectedTracerError: `x` is a tracer whose transformation has ended.
      TypeError: the elements are not numbers, or `x` is the type of an array.
    """
    if type(x) is HostArray:
        return x._value, x._weak
    if type(x) is np.ndarray:
        if not dtypes.has_numbers(x.dtype) and x.dtype.kind != "T":  # a device may store texts
            raise TypeError(f"arrays hold numbers and booleans, got dtype {x.dtype}")
        dtype = dtypes.canonicalize_dtype(x.dtype)
        return (x if dtype == x.dtype else x.astype(dtype)), False
    if isinstance(x, tracing.Tracer):
        raise errors.escaped_tracer_error(x)
    aval = avals.aval_of(x)
    if not aval.is_array:
        return x, False
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return to_numpy(aval.dtype.physical_value(x))
    if hasattr(x, "__jax_array__"):
        return to_numpy(x.__jax_array__())
    avals.check_value(x)
    return np.asarray(x, dtype=aval.dtype), aval.weak_type
