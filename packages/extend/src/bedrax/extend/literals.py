"""Python scalars and NumPy arrays with the type that they have in a program.

Equinox and Quax test with ``isinstance`` whether a value is one. A program that makes one may pass it to any function.
Bedrax itself makes none: it keeps scalars and their types separately.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bedrax.core.avals import ShapedArray, aval_functions


def _typed(scalar: type) -> Any:
    def __new__(cls, value, dtype):
        self = scalar.__new__(cls, value)
        self.dtype = np.dtype(dtype)
        return self

    name = f"Typed{scalar.__name__.title()}"
    body = {
        "__new__": __new__,
        "__repr__": lambda self: f"{name}({scalar(self)!r}, dtype={self.dtype.name})",
        "__getnewargs__": lambda self: (scalar(self), self.dtype),
        "__doc__": f"A Python {scalar.__name__} of a dtype, weakly typed: ``{name}(value, dtype)``.",
        "__module__": __name__,
    }
    kind = type(name, (scalar,), body)
    aval_functions[kind] = lambda x: ShapedArray((), x.dtype, weak_type=True)
    return kind


TypedInt: Final = _typed(int)
TypedFloat: Final = _typed(float)
TypedComplex: Final = _typed(complex)


class TypedNdArray(np.ndarray):
    """A NumPy array that may be weakly typed: ``TypedNdArray(array, weak_type)``."""

    weak_type: bool

    def __new__(cls, val: Any, weak_type: bool = False) -> TypedNdArray:
        self = np.asarray(val).view(cls)
        self.weak_type = bool(weak_type)
        return self

    def __array_finalize__(self, source: Any) -> None:
        self.weak_type = getattr(source, "weak_type", False)

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedNdArray, (np.asarray(self), self.weak_type)


aval_functions[TypedNdArray] = lambda x: ShapedArray(x.shape, x.dtype, weak_type=x.weak_type)

__all__ = ["TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray"]
