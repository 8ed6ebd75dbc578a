"""The inspection functions of a namespace in the array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np
from bedrax.core import dtypes, executors
from bedrax.numpy.dtype_queries import isdtype

version = "2024.12"  # of the standard

_NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


class NamespaceInfo:
    """Results of the array API standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """The optional capabilities of the namespace."""
        return {"boolean indexing": True, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """The default device is the executor's choice."""
        return None

    def devices(self) -> list[Any]:
        """The devices that can hold arrays."""
        return [None, *executors.get().devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of Python's numbers in the current mode."""
        return {
            "real floating": dtypes.default_float_dtype(),
            "complex floating": dtypes.default_complex_dtype(),
            "integral": dtypes.default_int_dtype(),
            "indexing": dtypes.default_int_dtype(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes of the standard that exist in the current mode, all or those of a kind."""
        available = [np.dtype(n) for n in _NAMES if dtypes.canonicalize_dtype(np.dtype(n)) == np.dtype(n)]
        return {d.name: d for d in available if kind is None or isdtype(d, kind)}


def namespace_info() -> NamespaceInfo:
    """The object that describes this namespace."""
    return NamespaceInfo()
