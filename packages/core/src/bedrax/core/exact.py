"""Values as keys of caches: two keys are equal only if types and bits are equal."""

from __future__ import annotations

import enum
import operator
import struct
from itertools import chain
from marshal import dumps
from typing import Any

import numpy as np

# Two equal values of one of these types are the same value. Classes of dtypes and enumerations are added at first use.
_ATOMS = {int, str, bytes, type(None), type(...)}
_bits = struct.Struct("d").pack


def exact(value: Any) -> Any:
    """Return the key of `value`: equal to that of another value only if types and bits are equal.

    For `==` of Python, ``True`` equals ``1.0``, ``-0.0`` equals ``0.0``, and a NaN equals no value. Here numbers are
    compared by type and bits, tuples element by element, and other values by `==`.

    Raises (when the result is hashed):
      TypeError: `value` is not hashable.
    """
    kind = type(value)
    if kind in _ATOMS or kind is tuple and _of_atoms(value):
        return value
    if kind is bool:
        return bool, value
    if kind is float:
        return float, _bits(value)
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, tuple):
        parts = list(map(exact, value))
        return value if kind is tuple and all(map(operator.is_, parts, value)) else (kind, *parts)
    if isinstance(value, frozenset):
        return kind, frozenset(map(exact, value))
    if isinstance(value, (float, complex)):
        return kind, np.asarray(value).tobytes()
    if isinstance(value, int):
        return kind, int(value)
    if isinstance(value, (np.dtype, enum.Enum)):
        _ATOMS.add(kind)
    return value


def equality_is_exact(value: Any) -> bool:
    """Whether each value of the same type that `==` takes for this one has the same key, and equals itself."""
    kind = type(value)
    if kind in _ATOMS or kind is bool:
        return True
    if kind is float:
        return value < 0 or value > 0
    if isinstance(value, (tuple, frozenset)):
        return not value and kind in (tuple, frozenset)
    return not isinstance(value, (np.generic, float, complex))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays in C order have the same shape, dtype and bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    word = np.uint64 if a.nbytes % 8 == 0 else np.uint8
    return np.array_equal(a.reshape(-1).view(np.uint8).view(word), b.reshape(-1).view(np.uint8).view(word))


def _of_atoms(values: tuple) -> bool:
    """Return whether tuples of tuples hold only atoms: they are their own keys."""
    while kinds := {type(v) for v in values} - _ATOMS:
        if kinds != {tuple}:
            return False
        values = tuple(chain.from_iterable([v for v in values if type(v) is tuple]))
    return True


def exact_items(params: dict[str, Any]) -> tuple[Any, ...]:
    """Return the items of a dictionary of parameters as a key; see `exact`."""
    return (*params, *[v if type(v) in _ATOMS else _part(v) for v in params.values()])


def _part(value: Any) -> Any:
    """Return the key of a parameter. `marshal` writes most tuples, by types and bits, in a third of the time."""
    kind = type(value)
    if kind is bool:
        return bool, value
    if kind is tuple:
        try:
            data = dumps(value, 2)
        except ValueError:  # it holds a value that `marshal` does not support
            return exact(value)
        if b"s" not in data or not _holds_buffer(value):
            return tuple, data
    return exact(value)


def _holds_buffer(value: Any) -> bool:
    """Return whether nested tuples hold bytes or a value of NumPy. `marshal` writes these alike, without the type (code ``s``)."""
    if isinstance(value, (tuple, list)):
        return any(map(_holds_buffer, value))
    return isinstance(value, (bytes, np.generic, np.ndarray))
